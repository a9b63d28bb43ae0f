"""Robust linear models: the exact solver beside cvxpy and beside the published methods.

    python -m benchmarks.linear_models [--quick]

cvxpy solves the epigraph form written by hand (one u per residual, one v per feature for linf) with
Clarabel, to a relative gap of 1e-8. The published methods (Ribeiro, Schoen, Zachariah and Bach,
AISTATS 2025; code advtrain-linear) are written from their ideas: iteratively reweighted ridge
regression, whose weights make the weighted ridge problem touch the adversarial one at the present
model; and for classification accelerated projected gradients over (theta, t) with
eps ||theta||_q <= t. They run until their objective is within 1e-8 of the exact one, or for ten
times as long as the exact solver: its objective is given to them, which they would not have.

The contenders take turns in each cell, three rounds, medians; what takes more than 2 s has one
round. Seconds are those of the processor, on one thread: other work on the machine does not count.
"""

import argparse
import json
import time
import warnings

import cvxpy
import numpy as np

from advlab import linear

SHAPES = ((200, 50), (500, 200), (200, 1000), (2000, 100), (100, 20000))
SHARES = (0.02, 0.1, 0.5)
TARGET = {(200, 50): 2, (500, 200): 20, (200, 1000): 20, (2000, 100): 40, (100, 20000): 40}
SECONDS = 30.0
"""What cvxpy gets for one problem, by the clock, before it has given up."""


def samples(n: int, d: int, loss: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    y = x[:, :10].sum(1) + rng.normal(size=n)
    if loss == "logistic":
        # A quarter of the labels are wrong, so that there is a minimiser where there can be one.
        y = np.where(y > 0, 1.0, -1.0) * np.where(rng.random(n) < 0.25, -1, 1)
    return x, y


def conic(x: np.ndarray, y: np.ndarray, eps: float, norm: str, loss: str) -> float:
    """The objective that cvxpy's model reaches."""
    n, d = x.shape
    theta, t = cvxpy.Variable(d), cvxpy.Variable()
    limits = []
    if norm == "linf":
        v = cvxpy.Variable(d)
        limits += [v >= theta, v >= -theta, eps * cvxpy.sum(v) <= t]
    else:
        limits += [eps * cvxpy.norm(theta, 2) <= t]
    if loss == "squared":
        u, r = cvxpy.Variable(n), cvxpy.Variable(n)
        limits += [r == y - x @ theta, u >= r + t, u >= -r + t]
        value = cvxpy.sum_squares(u) / n
    else:
        m = cvxpy.Variable(n)
        limits += [m == cvxpy.multiply(y, x @ theta) - t]
        value = cvxpy.sum(cvxpy.logistic(-m)) / n
    problem = cvxpy.Problem(cvxpy.Minimize(value), limits)
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-8)
    problem.solve(solver="CLARABEL", time_limit=SECONDS, **tight)
    if theta.value is None:
        return np.inf
    found = theta.value
    return float(linear.robust_losses(found, 0.0, x, y, eps, norm, loss).mean())


def reweighted(
    x: np.ndarray, y: np.ndarray, eps: float, norm: str, target: float, seconds: float = 60.0
) -> tuple[float, int]:
    """Iteratively reweighted ridge regression: objective and steps.

    (|r| + eps N)^2 <= r^2/c + (eps N)^2/(1 - c) for 0 < c < 1, with equality at
    c = |r| / (|r| + eps N); and |theta|_1^2 <= sum theta_j^2/w_j for weights that sum to 1.
    """
    n, d = x.shape
    best, step, begin = np.inf, 0, time.process_time()
    theta = np.linalg.lstsq(x, y, rcond=None)[0]
    while time.process_time() - begin < seconds:
        step += 1
        attack = eps * float(np.linalg.norm(theta, 1 if norm == "linf" else 2))
        r = np.abs(y - x @ theta)
        best = min(best, float(((r + attack) ** 2).mean()))
        if best <= target:
            break
        share = np.clip(r / np.maximum(r + attack, 1e-300), 1e-12, 1 - 1e-12)
        pull = eps**2 * float((1 / (1 - share)).sum())
        ridge = np.full(d, pull)
        if norm == "linf":
            size = np.abs(theta) + 1e-12 * np.abs(theta).max()
            ridge = pull * size.sum() / size
        if d <= n:
            theta = np.linalg.solve((x / share[:, None]).T @ x + np.diag(ridge), x.T @ (y / share))
        else:
            gram = (x / ridge) @ x.T + np.diag(share)
            theta = (x.T @ np.linalg.solve(gram, y)) / ridge
    return best, step


def onto_epigraph(theta: np.ndarray, t: float, norm: str) -> tuple[np.ndarray, float]:
    """The nearest (theta, t) with ||theta||_q <= t, q = 2 for l2 attacks and 1 for linf."""
    if norm == "l2":
        size = float(np.linalg.norm(theta))
        if size <= t:
            return theta, t
        if size <= -t:
            return np.zeros_like(theta), 0.0
        return (size + t) / (2 * size) * theta, (size + t) / 2
    sizes = np.sort(np.abs(theta))[::-1]
    if sizes.sum() <= t:
        return theta, t
    # theta shrinks by c and t grows by c: c = (sum of the k largest - t)/(k + 1).
    shrink = (np.cumsum(sizes) - t) / np.arange(2, len(sizes) + 2)
    kept = np.flatnonzero(sizes > shrink)
    c = float(shrink[kept[-1]]) if len(kept) else -t
    return np.sign(theta) * np.maximum(np.abs(theta) - c, 0.0), max(t + c, 0.0)


def accelerated(
    x: np.ndarray, y: np.ndarray, eps: float, norm: str, target: float, seconds: float
) -> tuple[float, int]:
    """Accelerated projected gradients for the logistic loss: objective and steps.

    minimise mean log(1 + exp(-(y x'theta - eps t))) over ||theta||_q <= t; momentum starts anew
    where it points uphill.
    """
    n, d = x.shape
    a = np.hstack([y[:, None] * x, np.full((n, 1), -eps)])
    rate = 4 * n / float(np.linalg.norm(a, 2)) ** 2
    z = before = np.zeros(d + 1)
    best, step, inertia, begin = np.inf, 0, 1.0, time.process_time()
    while time.process_time() - begin < seconds:
        step += 1
        slope = 1 / (1 + np.exp(np.minimum(a @ z, 700.0)))
        gradient = -(a.T @ slope) / n
        theta, t = onto_epigraph(
            z[:d] - rate * gradient[:d], float(z[d] - rate * gradient[d]), norm
        )
        new = np.append(theta, t)
        best = min(
            best, float(linear.robust_losses(theta, 0.0, x, y, eps, norm, "logistic").mean())
        )
        if best <= target:
            break
        if float((z - new) @ (new - before)) > 0:
            inertia = 1.0
        later = (1 + np.sqrt(1 + 4 * inertia**2)) / 2
        z, before, inertia = new + (inertia - 1) / later * (new - before), new, later
    return best, step


def clocked(call):
    begin = time.process_time()
    found = call()
    return time.process_time() - begin, found


def timed(call, repeats: int = 3):
    call()
    rounds = [clocked(call) for _ in range(repeats)]
    return float(np.median([spent for spent, _ in rounds])), rounds[-1][1]


def cell(n: int, d: int, loss: str, norm: str, share: float) -> dict:
    x, y = samples(n, d, loss)
    eps = share * linear.thresholds(x, y, norm, loss=loss, fit_intercept=False).zero

    def ours():
        return linear.solve_linear(x, y, eps, norm, loss, fit_intercept=False)

    def theirs() -> float:
        try:
            return conic(x, y, eps, norm, loss)
        except cvxpy.SolverError:
            return np.inf

    patience, exact = clocked(ours)
    patience = max(10 * patience, 0.2)
    limit = exact.objective * (1 + 1e-8)

    def published() -> tuple[float, int]:
        if loss == "squared":
            return reweighted(x, y, eps, norm, limit, patience)
        return accelerated(x, y, eps, norm, limit, patience)

    attained = "no minimiser" not in exact.status
    contenders = {"seconds": ours, "cvxpy": theirs} | ({"published": published} if attained else {})
    spent: dict[str, list[float]] = {name: [] for name in contenders}
    found = {}
    for _ in range(3):
        for name, call in contenders.items():
            if not spent[name] or spent[name][0] < 2:
                seconds, found[name] = clocked(call)
                spent[name].append(seconds)
    row = {"n": n, "d": d, "loss": loss, "norm": norm, "share": share}
    row |= {name: float(np.median(each)) for name, each in spent.items()}
    other = found["cvxpy"]
    row |= {
        "gap": exact.relative_gap, "status": exact.status.split(":")[0], "method": exact.method,
        "ratio": row["cvxpy"] / row["seconds"], "target": TARGET[n, d],
        "above cvxpy": exact.objective / other - 1 if 0 < other < np.inf else None,
    }  # fmt: skip
    if attained:
        value, steps = found["published"]
        row |= {"published steps": steps, "published above": value / exact.objective - 1}
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--loss", choices=("squared", "logistic"), help="only this loss")
    parser.add_argument("--shape", help="only this one, such as 500x200")
    parser.add_argument("--quick", action="store_true", help="only up to 200 x 1000")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    shapes = SHAPES[:3] if given.quick else SHAPES
    shapes = [one for one in shapes if given.shape in (None, "{}x{}".format(*one))]
    losses = (given.loss,) if given.loss else ("squared", "logistic")
    for n, d in shapes:
        for loss in losses:
            for norm in ("linf", "l2"):
                for share in SHARES:
                    print(json.dumps(cell(n, d, loss, norm, share)), flush=True)
    for n, d in shapes:
        for loss in losses:
            for norm in ("linf", "l2"):
                x, y = samples(n, d, loss)
                edge = linear.thresholds(x, y, norm, loss=loss).zero
                fits = [
                    timed(lambda s=s: linear.solve_linear(x, y, s * edge, norm, loss))[0]  # noqa: B023
                    for s in SHARES
                ]
                grid = np.geomspace(edge, edge / 100, 50)
                path, _ = timed(lambda: linear.adversarial_path(x, y, grid, norm, loss), 1)  # noqa: B023
                row = {
                    "path": f"{n}x{d} {loss} {norm}",
                    "seconds": path,
                    "fit": float(np.mean(fits)),
                }
                print(
                    json.dumps(row | {"ratio": path / float(np.mean(fits)), "target": 15}),
                    flush=True,
                )


if __name__ == "__main__":
    main()
