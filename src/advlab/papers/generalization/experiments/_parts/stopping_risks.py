"""Risks in high dimension: on fresh points, of which a model sees a few coordinates only."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ... import theory
from ...data import LinearModel, Regression
from ...reductions import RepeatedNeurons
from .lazy_nets import PHI, beyond_linear

FRESH = 4000
"""Points of a risk."""
RISKS = ("risk", "interpolator", "length")
"""Of training at T, and of the min-norm interpolator: its risk and its squared length."""


@dataclass(frozen=True)
class SpanLaw:
    """The data's law in the coordinates of an orthonormal basis Q whose span has theta0."""

    model: LinearModel
    basis: Float[Tensor, "d k"]
    truth: Float[Tensor, " k"]
    """Q'theta0"""
    cov: Float[Tensor, "k k"] | None
    """Q'Sigma Q; None is the identity."""

    @classmethod
    def of(cls, model: LinearModel, basis: Float[Tensor, "d k"]) -> "SpanLaw":
        """Of the data's law and Q."""
        truth, cov = torch.from_numpy(model.theta0_vector()) @ basis, None
        if model.cov is not None:
            cov = basis.mT @ torch.from_numpy(model.covariance()) @ basis
            cov = (cov + cov.mT) / 2
        return cls(model, basis, truth, cov)

    def fresh(self, rng: torch.Generator) -> Regression:
        """Fresh examples: Gaussian x have Gaussian coordinates, others are drawn whole."""
        if self.model.law == "gaussian":
            points = torch.randn(FRESH, len(self.truth), generator=rng, dtype=self.truth.dtype)
            if self.cov is not None:
                points = points @ torch.linalg.cholesky(self.cov).mT
        else:
            points = self.model.sample(rng, FRESH).x @ self.basis
        noise = torch.randn(FRESH, generator=rng, dtype=self.truth.dtype)
        return Regression(points, points @ self.truth + self.model.sigma2**0.5 * noise)

    def risk(self, net: RepeatedNeurons, fresh: Regression, eps: float, xi: float) -> float:
        """The risk of one network under its surrogate attack.

        With Gaussian inputs its linear part has a closed form, and fresh points give what is
        beyond; else they give all of it.

        Args:
            net: one network, in these coordinates.
            fresh: from `fresh`.
            eps, xi: of the attack.
        """
        if self.model.law == "gaussian":
            at = (self.truth.numpy(), self.model.sigma2, eps, xi)
            cov = None if self.cov is None else self.cov.numpy()
            line = theory.surrogate_risk(net.linear_part[0].numpy(), *at, cov=cov)
            return float(line) + beyond_linear(net, *fresh, eps, xi)
        x, y = fresh.x[None], fresh.y[None]
        return float((net.values(x + net.attack(x, y, eps, xi))[0] - y).square().mean())


def one_of(net: RepeatedNeurons, replicate: int) -> RepeatedNeurons:
    """A replicate alone."""
    return replace(net, theta=net.theta[replicate : replicate + 1])


def linear_model(theta: Float[Tensor, " k"]) -> RepeatedNeurons:
    """theta'x as a network of one neuron."""
    line = PHI["linear"]
    return RepeatedNeurons(
        theta[None, None] / line.slope, torch.ones(1, dtype=theta.dtype), 1, line
    )
