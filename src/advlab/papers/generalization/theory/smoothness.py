"""The smoothness of the potential R~ of Theorem 2's proof, which limits the step of descent."""

import numpy as np

from ....core.checks import Array, ArrayLike, Scalar, length, scalar, vector
from .surrogate import potential_gradient

LENGTHS, ANGLES = 200, 37


def potential_smoothness(
    theta0: ArrayLike,
    sigma2: Scalar,
    radius: Scalar,
    xi: Scalar,
    reach: Scalar,
    convention: str = "definition",
) -> float:
    """The largest eigenvalue of the Hessian of R~ over the ball ||theta|| <= reach; cov = I.

    At theta = 0 it is 2 + 2 radius^2 + 2 radius v^2 / xi_eff; the largest is a little way off, on
    the other side of theta0 (derived here). It is the largest on a grid of 201 lengths and 37
    angles with theta0, of central differences of the gradient.

    Gradient descent on R~ with a step eta of at most 1 over it, along g in place of grad R~, has

        R~(theta - eta g) <= R~(theta) - (eta/2) |grad R~|^2 + (eta/2) |g - grad R~|^2

    where the ball holds both ends. The paper writes it 2 L / xi, and eta = xi / (2 L).

    Args:
        theta0, sigma2: the linear model.
        radius, xi: of the attack, xi > 0.
        reach: the radius of the ball of models.
        convention: how xi is read, see `xi_eff`.

    Example:
        from advlab.papers.generalization.theory import potential_smoothness
        1 / potential_smoothness([1.0, 0.0], 1.0, 0.5, 0.1, reach=2.0)  # a step of descent
    """
    truth, end = vector("theta0", theta0), scalar("reach", reach)
    # R~ depends on ||theta|| and theta'theta0: a third axis stands for all others.
    axes = min(len(truth), 3)
    law = np.zeros(axes)
    law[0] = np.linalg.norm(truth)
    models = _plane(end, axes)
    step = 1e-5 * length("xi", xi)
    at = (law, sigma2, radius, xi, convention)
    columns = [
        potential_gradient(models + step * unit, *at)
        - potential_gradient(models - step * unit, *at)
        for unit in np.eye(axes)
    ]
    hessians = np.stack(columns, axis=-1) / (2 * step)
    return float(np.linalg.eigvalsh((hessians + hessians.swapaxes(1, 2)) / 2).max())


def _plane(reach: float, axes: int) -> Array:
    """Models in the half plane of the first two axes, densely near zero."""
    lengths = np.append(0.0, reach * np.geomspace(1e-5, 1.0, LENGTHS))
    angles = np.linspace(0.0, np.pi, ANGLES if axes > 1 else 2)
    unit = np.zeros((len(angles), axes))
    unit[:, 0] = np.cos(angles)
    if axes > 1:
        unit[:, 1] = np.sin(angles)
    return (lengths[:, None, None] * unit).reshape(-1, axes)
