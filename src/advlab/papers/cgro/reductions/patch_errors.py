"""Test errors and full-ball attacks of patch networks, without any d-vector.

A fresh noise patch is seen by the filters as z ~ N(0, sigma^2 A), A their Gram matrix beside w*, so
test errors need m x m numbers. Attacks on f move within span{w_r}: with S S' = A + u u' the network
is, in coordinates of that span, the patch network with the rows of S as filters, and m numbers per
patch are all an attack has to search. Any attack of the lab works there as it is.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ....core.randomness import Rng, normal
from ....models import Stack
from ..models import PatchCNN
from .patch_dynamics import PatchState
from .patch_pgd import PGDState

Trained = PatchState | PGDState
"""R networks in closed coordinates, trained against GTA or PGD."""


@dataclass(frozen=True)
class FreshNoise:
    """Normals for fresh test inputs; the same ones at every step show changes without jitter."""

    normals: Float[Tensor, "R n noise m"]

    @classmethod
    def draw(cls, state: Trained, n: int, rng: Rng) -> "FreshNoise":
        R, m = state.u.shape
        like = torch.empty(R, n, state.problem.patches - 1, m, dtype=torch.float64)
        return cls(normal(like, rng))

    def projections(self, state: Trained) -> Float[Tensor, "R n noise m"]:
        """y <w_r, X[j]> of the noise patches of fresh inputs."""
        spread = state.problem.sigma[:, None, None] * _root(state.weight_gram)
        return (self.normals.flatten(1, 2) @ spread.mT).reshape(self.normals.shape)

    def noise(self, state: Trained) -> Float[Tensor, "R n"]:
        """V of fresh inputs; its law is symmetric about 0."""
        return (self.projections(state) ** 3).sum((2, 3))

    def errors(self, state: PatchState, attacked: bool) -> Float[Tensor, " R"]:
        """The share of fresh inputs with y f <= 0.

        Args:
            state: the networks.
            attacked: whether inputs are GTA examples.
        """
        signal = state.residue if attacked else state.signal
        return (signal[:, None] + self.noise(state) <= 0).double().mean(1)


def network(state: Trained) -> Stack:
    """The networks in coordinates of the span of their filters: inputs are (R * n, P, m)."""
    return Stack([PatchCNN(one) for one in _span_root(state)])


def train_inputs(state: Trained) -> Float[Tensor, "R N P m"]:
    """The training inputs in the coordinates of `network`, the signal patch first."""
    y = state.problem.y
    seen = state.v.reshape(*y.shape, state.problem.patches - 1, -1)
    return _coordinates(state, seen, y)


def test_inputs(state: Trained, fresh: FreshNoise) -> Float[Tensor, "R n P m"]:
    """Fresh inputs in the coordinates of `network`, the signal patch first, all of label 1.

    By symmetry a fresh input of label -1 is as hard as one of label 1.
    """
    seen = fresh.projections(state)
    return _coordinates(state, seen, torch.ones_like(seen[..., 0, 0]))


def _coordinates(
    state: Trained, seen: Float[Tensor, "R n noise m"], y: Float[Tensor, "R n"]
) -> Float[Tensor, "R n P m"]:
    """Inputs of label y whose patches, times y, the filters see as alpha u and as `seen`."""
    signal = (state.problem.alpha[:, None] * state.u)[:, None, None].expand_as(seen[:, :, :1])
    whole = y[..., None, None] * torch.cat([signal, seen], 2)
    root = _span_root(state)[:, None]
    return torch.linalg.solve_triangular(root.mT, whole, upper=True, left=False)


def _span_root(state: Trained) -> Float[Tensor, "R m m"]:
    return _root(state.weight_gram + state.u[:, :, None] * state.u[:, None, :])


def _root(gram: Float[Tensor, "R m m"]) -> Float[Tensor, "R m m"]:
    return torch.linalg.cholesky(gram)
