"""Robust linear models: the exact solver beside cvxpy and beside the published method.

    python -m benchmarks.linear_models [--quick]

cvxpy solves the epigraph form written by hand (one u per residual, one v per feature for linf) with
Clarabel, to a relative gap of 1e-8. The published method is iteratively reweighted ridge regression
(Ribeiro, Schoen, Zachariah and Bach, AISTATS 2025), written from its idea: weights are chosen so
that the weighted ridge problem touches the adversarial one at the present model. Regression only;
it runs until its objective is within 1e-8 of the exact one, or for a limited number of steps.
Seconds are those of the processor, on one thread: other work on the machine does not count.
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
SECONDS = 60.0
"""What cvxpy gets for one problem of the largest shape before it has given up."""


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
    x: np.ndarray, y: np.ndarray, eps: float, norm: str, target: float, most: int = 2000
) -> tuple[float, int]:
    """Iteratively reweighted ridge regression: objective and steps.

    (|r| + eps N)^2 <= r^2/c + (eps N)^2/(1 - c) for 0 < c < 1, with equality at
    c = |r| / (|r| + eps N); and |theta|_1^2 <= sum theta_j^2/w_j for weights that sum to 1.
    """
    n, d = x.shape
    best, theta = np.inf, np.linalg.lstsq(x, y, rcond=None)[0]
    for step in range(1, most + 1):
        attack = eps * float(np.linalg.norm(theta, 1 if norm == "linf" else 2))
        r = np.abs(y - x @ theta)
        best = min(best, float(((r + attack) ** 2).mean()))
        if best <= target:
            return best, step
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
    return best, most


def timed(call, repeats: int = 3):
    call()
    spent, found = [], None
    for _ in range(repeats):
        begin = time.process_time()
        found = call()
        spent.append(time.process_time() - begin)
    return float(np.median(spent)), found


def cell(n: int, d: int, loss: str, norm: str, share: float) -> dict:
    x, y = samples(n, d, loss)
    edge = linear.thresholds(x, y, norm, loss=loss, fit_intercept=False).zero
    eps = share * edge
    seconds, found = timed(lambda: linear.solve_linear(x, y, eps, norm, loss, fit_intercept=False))
    begin = time.process_time()
    try:
        other = conic(x, y, eps, norm, loss)
    except cvxpy.SolverError:
        other = np.inf
    theirs = time.process_time() - begin
    row = {
        "n": n, "d": d, "loss": loss, "norm": norm, "share": share, "seconds": seconds,
        "gap": found.relative_gap, "status": found.status.split(":")[0], "method": found.method,
        "cvxpy": theirs, "ratio": theirs / seconds, "target": TARGET[n, d],
        "above cvxpy": found.objective / other - 1 if np.isfinite(other) else None,
    }  # fmt: skip
    if loss == "squared":
        begin = time.process_time()
        limit = found.objective * (1 + 1e-8)
        value, steps = reweighted(x, y, eps, norm, limit, 300 if d <= 1000 else 50)
        row |= {"irls": time.process_time() - begin, "irls steps": steps,
                "irls above": value / found.objective - 1}  # fmt: skip
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--loss", choices=("squared", "logistic"), help="only this loss")
    parser.add_argument("--quick", action="store_true", help="only up to 200 x 1000")
    parser.add_argument("--no-largest", action="store_true", help="without 100 x 20000")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    shapes = SHAPES[:3] if given.quick else SHAPES[:4] if given.no_largest else SHAPES
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
