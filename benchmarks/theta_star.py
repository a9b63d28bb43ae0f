"""The robust optimum at 100 radii: one vectorised root search against a general minimiser.

python -m benchmarks.theta_star
"""

import json

import numpy as np
from scipy.optimize import minimize

from advlab.linear import C0, eps_zero, optimal_path

from .timing import interleaved

TARGET = 50.0
DIMENSION = 10


def problem(dimension: int) -> tuple[np.ndarray, float, np.ndarray]:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2 * dimension, dimension))
    return rng.normal(size=dimension), 1.0, root.T @ root / (2 * dimension)


def searched(theta0: np.ndarray, sigma2: float, radii: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """scipy.optimize.minimize on the closed-form risk, with its gradient, one radius at a time.

    Each starts from the optimum before it, which is the best that a loop can do.
    """
    theta, rows = theta0, []
    for eps in radii:
        theta = minimize(risk, theta, args=(theta0, sigma2, eps, cov), jac=True, tol=1e-9).x
        rows.append(theta)
    return np.array(rows)


def risk(theta, theta0, sigma2, eps, cov):
    error = cov @ (theta - theta0)
    s = np.sqrt(error @ (theta - theta0) + sigma2)
    a = np.sqrt(theta @ theta)
    value = s**2 + eps**2 * a**2 + 2 * C0 * eps * a * s
    return value, 2 * error * (1 + C0 * eps * a / s) + 2 * theta * (eps**2 + C0 * eps * s / a)


def main() -> None:
    theta0, sigma2, cov = problem(DIMENSION)
    radii = np.linspace(0.01, 0.95, 100) * eps_zero(theta0, sigma2, "l2", cov)
    gap = np.abs(
        optimal_path(theta0, sigma2, radii, cov=cov).theta - searched(theta0, sigma2, radii, cov)
    ).max()
    if gap > 1e-4:
        raise SystemExit(f"the two answers differ by {gap:.2g}; no ratio is worth printing")
    seconds = interleaved(
        {
            "optimal_path": lambda: optimal_path(theta0, sigma2, radii, cov=cov),
            "scipy.optimize.minimize": lambda: searched(theta0, sigma2, radii, cov),
        },
        repeats=7,
    )
    ratio = seconds["scipy.optimize.minimize"] / seconds["optimal_path"]
    row = {"benchmark": "theta_star", "ratio": round(ratio, 1), "target": TARGET}
    print(json.dumps(row | {"seconds": seconds, "radii": len(radii), "gap": float(gap)}))
    verdict = "meets" if ratio >= TARGET else "misses"
    print(f"theta_star: {ratio:.0f} times faster for {len(radii)} radii, {verdict} {TARGET:.0f}")


if __name__ == "__main__":
    main()
