"""PGD training of the cubic patch network in closed coordinates: exact, at a cost without d.

A move of patch j that follows gradients of f is sum_q a_jq w_q. With G = W W' the filters see it as
a_j G and its squared length is a_j G a_j'. So a step of training against such moves is

    W <- W + M W + Q' B,   M_rq = 3 eta sum_ij pa_i z~_ijr^2 a_ijq,

where B has the rows w* and x_k (labels in them, as in `patch_law`), z_k = <w, x_k> and z~ = z + a G
are what the filters see without and with the move, and Q_kr = 3 eta (pc_i z_kr^2 + pa_i z~_kr^2),
pc_i = (1 - lam) psi(y f(X_i))/N, pa_i = lam psi(y f(X_i adv))/N. z, u = W w* and G are closed; G
is kept as u u' and what is beside w*, which would be lost next to a large u.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ....core.errors import AdvlabError
from .patch_law import PatchProblem

Seen = Float[Tensor, "R N P m"]
"""y_i <w_r, X_i[j]>, the signal patch first."""


@dataclass(frozen=True)
class PGDState:
    """R networks after some steps; the label of an example is in its patches."""

    problem: PatchProblem
    step: int
    u: Float[Tensor, "R m"]
    """<w_r, w*>."""
    v: Float[Tensor, "R K m"]
    """y_k <w_r, x_k>."""
    weight_gram: Float[Tensor, "R m m"]
    """<w_r, w_q> without the part along w*."""

    @property
    def gram(self) -> Float[Tensor, "R m m"]:
        """<w_r, w_q>."""
        return self.weight_gram + self.u[:, :, None] * self.u[:, None, :]

    @property
    def signal(self) -> Float[Tensor, " R"]:
        """alpha^3 U, what the signal patch adds to y f."""
        return self.problem.alpha**3 * (self.u**3).sum(-1)

    @property
    def V(self) -> Float[Tensor, "R N"]:
        """What the noise patches of an example add to y f."""
        return (self.v**3).reshape(*self.problem.y.shape, -1).sum(-1)

    @property
    def seen(self) -> Seen:
        """What the filters see of the training inputs, times y."""
        R, N = self.problem.y.shape
        signal = (self.problem.alpha[:, None] * self.u)[:, None, None].expand(R, N, 1, -1)
        return torch.cat([signal, self.v.reshape(R, N, self.problem.patches - 1, -1)], 2)


@dataclass(frozen=True)
class PatchPGD:
    """l2 PGD from the clean input, in coordinates of the filters.

    Its points are those of `attacks.PGD(steps, step_size, random_start=False)`: steps of the length
    step_size times the radius, the jump at the end, and the worst point seen.

    Args:
        radius: of the ball, one per replicate.
        steps: how many gradients.
        step_size: as a share of the radius.
    """

    radius: Float[Tensor, " R"]
    steps: int = 3
    step_size: float = 0.5

    def __call__(self, seen: Seen, gram: Float[Tensor, "R m m"]) -> tuple[Seen, Seen]:
        """The moves a, and what the filters see after them.

        Args:
            seen: what they see of the clean inputs, times y.
            gram: <w_r, w_q>.
        """
        radius = self.radius[:, None, None, None]
        move, felt = torch.zeros_like(seen), torch.zeros_like(seen)
        worst, best_move, best_felt = _margins(seen), move, felt
        ahead, ahead_felt = move, felt
        for _ in range(self.steps):
            ahead, ahead_felt = _unit((seen + felt) ** 2, gram)
            move = move - self.step_size * radius * ahead
            felt = felt - self.step_size * radius * ahead_felt
            length = (move * felt).sum((2, 3), keepdim=True).clamp_min(0).sqrt()
            back = (radius / length.clamp_min(1e-300)).clamp_max(1)
            move, felt = back * move, back * felt
            worst, best_move, best_felt = _worse(seen, (worst, best_move, best_felt), (move, felt))
        jump = (-radius * ahead, -radius * ahead_felt)
        _, best_move, best_felt = _worse(seen, (worst, best_move, best_felt), jump)
        return best_move, seen + best_felt


def pgd_trajectory(
    problem: PatchProblem,
    attack: PatchPGD,
    lam: float,
    eta: Float[Tensor, " R"],
    at: Collection[int],
) -> Iterator[PGDState]:
    """Gradient descent on (O) with the attack's examples; the states at the steps in `at`.

    Args:
        problem: R problems and the start of their networks.
        attack: made anew at every step.
        lam: the weight lambda of adversarial examples.
        eta: the learning rate of each replicate.
        at: steps, 0 or more.

    Example:
        from advlab.papers.cgro.data import Patches
        from advlab.papers.cgro.reductions import patch_law
        from advlab.papers.cgro.reductions.patch_pgd import PatchPGD, pgd_trajectory
        problem = patch_law.draw(Patches.scaled(n=20, d=300), 10, 300**-0.5, rng)
        attack = PatchPGD(radius=0.3 * problem.alpha)
        [state.V for state in pgd_trajectory(problem, attack, 0.5, eta, [0, 1000])]
    """
    if not at or min(at) < 0:
        raise AdvlabError("steps of 0 or more to stop at", sorted(at)[:3])
    state = PGDState(problem, 0, problem.u, problem.v, problem.weight_gram)
    for step in sorted(set(at)):
        while state.step < step:
            state = _stepped(state, attack, lam, eta)
        yield state


def _stepped(state: PGDState, attack: PatchPGD, lam: float, eta: Tensor) -> PGDState:
    problem, seen = state.problem, state.seen
    move, moved = attack(seen, state.gram)
    rate = (3 * eta / problem.y.shape[1])[:, None]
    clean = ((1 - lam) * rate * torch.sigmoid(-_margins(seen)))[..., None, None]
    attacked = (lam * rate * torch.sigmoid(-_margins(moved)))[..., None, None] * moved**2
    force = clean * seen**2 + attacked
    Q = force[:, :, 1:].reshape(state.v.shape)
    along = problem.alpha[:, None] * force[:, :, 0].sum(1)
    M = attacked.flatten(1, 2).mT @ move.flatten(1, 2)
    grown = torch.eye(M.shape[1], dtype=M.dtype) + M
    pulled = problem.gram @ Q
    cross = grown @ (state.v.mT @ Q)
    return PGDState(
        problem,
        state.step + 1,
        (grown @ state.u[..., None])[..., 0] + along,
        state.v @ grown.mT + pulled,
        grown @ state.weight_gram @ grown.mT + cross + cross.mT + Q.mT @ pulled,
    )


def _margins(seen: Seen) -> Float[Tensor, "R N"]:
    return (seen**3).sum((2, 3))


def _unit(a: Seen, gram: Float[Tensor, "R m m"]) -> tuple[Seen, Seen]:
    """A move over its length, and what the filters see of it."""
    felt = (a.flatten(1, 2) @ gram).reshape(a.shape)
    length = (a * felt).sum((2, 3), keepdim=True).clamp_min(1e-300).sqrt()
    return a / length, felt / length


def _worse(seen: Seen, best: tuple, other: tuple[Seen, Seen]) -> tuple[Tensor, Seen, Seen]:
    """The smaller margin of two moves, example by example."""
    worst, best_move, best_felt = best
    move, felt = other
    margins = _margins(seen + felt)
    less = (margins < worst)[..., None, None]
    return (
        torch.minimum(worst, margins),
        torch.where(less, move, best_move),
        torch.where(less, felt, best_felt),
    )
