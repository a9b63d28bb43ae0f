"""The hypothesis of Lemma A.2 along a run, as the proof of Lemma C.7 uses it."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ... import theory
from ...reductions.patch_dynamics import PatchState
from ...reductions.patch_law import PatchProblem


class FastestProducts:
    """C of Lemma A.2 for the largest v_ijr(0) of each example, and when its V_i reaches 1.

    A.2 is about z_t = z_0 + A sum z_s^2 +- C. Here z is that product and C the largest remainder of
    Lemma C.5 (what other noise patches have added) among the states seen before V_i >= 1.

    Args:
        problem: the problems and the start of their networks.
    """

    def __init__(self, problem: PatchProblem):
        self.problem = problem
        self.start: Float[Tensor, "R N"] = problem.largest
        self.noise: Float[Tensor, "R N"] = torch.zeros_like(problem.y)
        self.memorised: Float[Tensor, "R N"] = torch.full_like(problem.y, torch.inf)
        self._place = self._rows(problem.v).argmax(2, keepdim=True)

    def note(self, state: PatchState) -> Float[Tensor, "R K m"]:
        """Look at a state; states come in the order of their steps. Returns all remainders."""
        norms = state.problem.gram.diagonal(dim1=1, dim2=2)
        parts = (one.numpy() for one in (state.v, state.problem.v, state.beta, norms))
        remainder = torch.from_numpy(theory.noise_remainder(*parts))
        own = self._rows(remainder).abs().gather(2, self._place)[..., 0]
        waiting = self.memorised.isinf()
        self.noise = torch.where(waiting, torch.maximum(self.noise, own), self.noise)
        self.memorised[waiting & (state.V >= 1)] = state.step
        return remainder

    @property
    def met(self) -> Bool[Tensor, "R N"]:
        """Whether C <= z_0/2."""
        return self.noise <= self.start / 2

    def _rows(self, v: Tensor) -> Tensor:
        return v.reshape(*self.problem.y.shape, -1)
