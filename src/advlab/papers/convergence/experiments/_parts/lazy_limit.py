"""The two-layer network of infinite width: training a linear model in the features of its kernel.

On the unit sphere K(x, y) = sum_k h_k^2 <x, y>^(k+1), h_k the Hermite coefficients of sigma', and
<x, y>^p is the sum over monomials x^a of degree p of p!/a! x^a y^a. So K is the inner product of
finitely many features to any accuracy. A network that is linear in its weights moves by theta when
f = <theta, features>, and ||W - W0||_F = ||theta|| is the RKHS norm of what it has learned.
"""

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from math import factorial, prod, sqrt

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .....attacks import Attack
from .....losses import pseudo_huber
from .....threats import Threat
from ...theory import hermite_coefficients

DEGREE = 10
"""Of the last Hermite coefficient: the rest of the kernel of sin + cos is below 1e-7."""


class KernelFeatures:
    """phi with <phi(x), phi(y)> = K(x, y) for unit vectors.

    Args:
        activation: sigma.
        d: the dimension of the inputs.
        degree: of the last Hermite coefficient of sigma' that is kept.
    """

    def __init__(self, activation: str, d: int, degree: int = DEGREE):
        h = hermite_coefficients(activation, degree)
        chosen = [
            np.bincount(which, minlength=d)
            for p in range(1, degree + 2)
            for which in combinations_with_replacement(range(d), p)
        ]
        self.exponents: Int[Tensor, "features d"] = torch.tensor(np.array(chosen))
        sizes = [
            abs(h[sum(a) - 1]) * sqrt(factorial(sum(a)) / prod(factorial(int(k)) for k in a))
            for a in chosen
        ]
        self.sizes = torch.tensor(sizes, dtype=torch.float64)
        self.degree = degree + 1

    def __call__(self, x: Float[Tensor, "rows d"]) -> Float[Tensor, "rows features"]:
        powers = torch.stack([x**k for k in range(self.degree + 1)], dim=1)
        monomials = self.sizes.expand(len(x), -1)
        for j in range(x.shape[1]):
            monomials = monomials * powers[:, :, j][:, self.exponents[:, j]]
        return monomials


def displacements(
    features: Callable[[Tensor], Tensor],
    x: Float[Tensor, "R n d"],
    y: Float[Tensor, "R n"],
    *,
    attack: Attack,
    threat: Threat,
    rate: float,
    steps: int,
    rngs: Sequence[torch.Generator],
) -> Float[Tensor, "steps_and_1 R"]:
    """||theta|| before each step and after the last, of each of R data sets.

    Gradient descent on the pseudo-Huber loss at the attacked inputs, from theta = 0.

    Args:
        features: phi.
        x: inputs. y: their labels.
        attack: how inputs are moved. threat: where to.
        rate: alpha. steps: how many.
        rngs: one generator per data set, for the attack.
    """
    replicates, n = y.shape
    points, labels = x.double().flatten(0, 1), y.double().flatten()
    points = points / points.norm(dim=1, keepdim=True)  # float32 is not quite on the sphere
    theta = torch.zeros(replicates, len(features(points[:1])[0]), dtype=torch.float64)
    norms = []
    for _ in range(steps):
        norms.append(theta.norm(dim=1))
        own = theta.repeat_interleave(n, 0)

        def loss(z: Tensor, own: Tensor = own) -> Tensor:
            return pseudo_huber((features(z) * own).sum(1), labels)

        phi = features(attack(loss, points, threat, rng=list(rngs)).x)
        u = (phi * own).sum(1) - labels
        slope = u / (1 + u**2).sqrt()
        theta = theta - rate / n * (slope[:, None] * phi).reshape(replicates, n, -1).sum(1)
    return torch.stack([*norms, theta.norm(dim=1)])
