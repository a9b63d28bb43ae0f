"""What no network of quadratic ReLU can go below, whatever its width and weights.

max(z, 0)^2 + max(-z, 0)^2 = z^2, so f(W, x) + f(W, -x) = m^(-1/2) sum a_r (w_r.x)^2 is a quadratic
form of x, of d(d+1)/2 numbers. Where x and -x have one label y, convexity of the loss gives
l(f(x), y) + l(f(-x), y) >= 2 l(q(x), y) with q half of that form.
"""

import numpy as np
from scipy.optimize import minimize

from ....core.checks import ArrayLike, points, signs


def quadratic_floor(x: ArrayLike, y: ArrayLike) -> float:
    """min over symmetric Q of mean sqrt(1 + (x_i'Q x_i - y_i)^2) - 1, a convex program.

    With antipodes of equal labels it is a lower bound of the clean loss of every network of
    quadratic ReLU, and so of its worst-case loss; zero if d(d+1)/2 or fewer generic pairs are
    there.

    Args:
        x: one point of each antipodal pair, as rows.
        y: the labels, +1 or -1, of the pairs.

    Example:
        from advlab.papers.convergence.theory.quadratic_floor import quadratic_floor
        quadratic_floor(x[::2], y[::2])  # of Antipodes(n=20, d=3, labels="equal")
    """
    rows = points("x", x)
    labels = signs(y, len(rows))
    upper = np.triu_indices(rows.shape[1])
    monomials = rows[:, upper[0]] * rows[:, upper[1]]

    def loss(q: np.ndarray) -> tuple[float, np.ndarray]:
        away = monomials @ q - labels
        root = np.sqrt(1 + away**2)
        return float((root - 1).mean()), monomials.T @ (away / root) / len(rows)

    found = minimize(loss, np.zeros(monomials.shape[1]), jac=True, method="BFGS",
                     options={"gtol": 1e-9})  # fmt: skip
    return float(found.fun)
