"""Training the cubic patch network in closed coordinates: exact, at a cost that does not know d.

With p_i = (1 - lam) psi(y_i f(X_i)) + lam psi(y_i f(X_i adv)), psi(z) = 1/(1 + e^z), a step is

    u_r += (3 eta/N) u_r^2 sum_i [(1 - lam) alpha^3 pc_i + lam (alpha (1 - gamma))^3 pa_i],
    v   += (3 eta/N) G Q,    Q_kr = p_i(k) v_kr^2,    beta += (3 eta/N) Q,

and the weights are w_r(0) + (u_r - u_r(0)) w* + sum_k beta_kr y_k x_k (proof of Theorem C.2). GTA
moves the signal patch only, by a fixed amount, so its examples are never made.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from scipy.special import expit
from torch import Tensor

from ....core.errors import AdvlabError
from ..data import Patches, PatchPoints
from .patch_law import PatchProblem, noise_patches

Each = float | Float[Tensor, " R"]
"""One number for all replicates, or one per replicate."""


@dataclass(frozen=True)
class PatchState:
    """R networks after some steps of training."""

    problem: PatchProblem
    step: int
    lam: Float[Tensor, " R"]
    eta: Float[Tensor, " R"]
    u: Float[Tensor, "R m"]
    v: Float[Tensor, "R K m"]
    beta: Float[Tensor, "R K m"]
    """Coefficients of the y_k x_k in the weights, grown since the start."""

    @property
    def U(self) -> Float[Tensor, " R"]:
        """sum_r u_r^3."""
        return (self.u**3).sum(-1)

    @property
    def V(self) -> Float[Tensor, "R N"]:
        """V_i = sum_{j,r} v_ijr^3, what the noise of an example adds to y f."""
        return (self.v**3).reshape(*self.problem.y.shape, -1).sum(-1)

    @property
    def signal(self) -> Float[Tensor, " R"]:
        """alpha^3 U, what the signal patch adds to y f."""
        return self.problem.alpha**3 * self.U

    @property
    def residue(self) -> Float[Tensor, " R"]:
        """s = (alpha (1 - gamma))^3 U, what GTA leaves of it."""
        return (self.problem.alpha * (1 - self.problem.gamma)) ** 3 * self.U

    def margins(self, attacked: bool) -> Float[Tensor, "R N"]:
        """y_i f of the training inputs, or of their GTA examples."""
        return (self.residue if attacked else self.signal)[:, None] + self.V

    def errors(self, attacked: bool) -> Float[Tensor, " R"]:
        """The share of training inputs with y f <= 0."""
        return (self.margins(attacked) <= 0).double().mean(1)

    @property
    def loss(self) -> Float[Tensor, " R"]:
        """The training objective (O)."""
        clean, attacked = (F.softplus(-self.margins(one)).mean(1) for one in (False, True))
        return (1 - self.lam) * clean + self.lam * attacked

    @property
    def gradient_norm(self) -> Float[Tensor, " R"]:
        """||grad_W L||_F, from one step that is not taken."""
        return self._force.norm()

    @property
    def weight_gram(self) -> Float[Tensor, "R m m"]:
        """<w_r, w_q> without the part along w*: A_0 + beta'v_0 + v_0'beta + beta'G beta."""
        cross = self.beta.mT @ self.problem.v
        own = self.beta.mT @ (self.problem.gram @ self.beta)
        return self.problem.weight_gram + cross + cross.mT + own

    def cross_talk(self) -> Float[Tensor, "R K m"]:
        """v - v(0) less what each noise patch owes to itself: the remainder of Lemma C.5."""
        own = self.problem.gram.diagonal(dim1=1, dim2=2)[..., None]
        return self.v - self.problem.v - own * self.beta

    def lift(
        self, data: Patches, points: PatchPoints, start: Float[Tensor, "*stack m d"]
    ) -> Float[Tensor, "R m d"]:
        """The weights in d dimensions.

        Args:
            data: the law of the examples.
            points: the examples, as a stack or those of one replicate.
            start: the weights at the start, likewise.
        """
        along = (self.u - self.problem.u)[..., None] * data.direction()
        return start + along + self.beta.mT @ noise_patches(data, points)

    @property
    def _force(self) -> "_Force":
        return _Force(self)


def trajectory(
    problem: PatchProblem, lam: Each, eta: Each, at: Collection[int]
) -> Iterator[PatchState]:
    """Gradient descent on (O) with GTA examples; the states at the steps in `at`, in order.

    Nothing is trained beyond the last step asked for.

    Args:
        problem: R problems and the start of their networks.
        lam: the weight lambda of adversarial examples, one for all or one per replicate.
        eta: the learning rate, likewise.
        at: steps, 0 or more.

    Example:
        from advlab.papers.cgro.data import Patches
        from advlab.papers.cgro.reductions import patch_law, trajectory
        problem = patch_law.draw(Patches.scaled(n=20, d=1000), 10, 1000**-0.5, rng)
        [state.V.min() for state in trajectory(problem, 0.5, 0.02, [0, 1000, 40_000])]
    """
    moving = _Moving(problem, _each("lam", lam, problem, 1.0), _each("eta", eta, problem))
    if not at or min(at) < 0:
        raise AdvlabError("steps of 0 or more to stop at", sorted(at)[:3])
    for step in sorted(set(at)):
        moving.advance(step)
        yield moving.state()


def log_steps(last: int, ratio: float = 1.02) -> list[int]:
    """0, 1, 2, ... and then steps that grow by the ratio, up to `last`.

    Args:
        last: the last step.
        ratio: of a step to the one before, above 1.
    """
    steps, place = [0], 1.0
    while round(place) < last:
        steps.append(round(place))
        place = max(place * ratio, place + 1)
    return [*steps, last] if last else steps


@dataclass
class _Moving:
    """The numbers that move, in place, and what a step needs of those that do not."""

    problem: PatchProblem
    lam: Tensor
    eta: Tensor
    step: int = 0
    u: Tensor = field(init=False)
    v: Tensor = field(init=False)
    moved: Tensor = field(init=False)
    """The sum of Q over the steps."""

    def __post_init__(self):
        problem = self.problem
        self.u, self.v = problem.u.clone(), problem.v.clone()
        self.moved = torch.zeros_like(self.v)
        self.rate = 3 * self.eta / problem.y.shape[1]
        self.pull = self.rate[:, None, None] * problem.gram
        self.scales, self.shares = _signals(problem, self.lam)
        self.push = self.rate[:, None] * self.shares * self.scales

    def advance(self, to: int) -> None:
        """Steps in place, in numpy: on so few numbers it takes half of torch's time."""
        u, v, moved, pull, push = (
            one.numpy() for one in (self.u, self.v, self.moved, self.pull, self.push)
        )
        shares, scales = self.shares.numpy()[..., None], self.scales.numpy()[..., None]
        grouped = v.reshape(*self.problem.y.shape, -1)
        squares, pulled = np.empty_like(grouped), np.empty_like(v)
        Q = squares.reshape(v.shape)
        for _ in range(self.step, to):
            np.multiply(grouped, grouped, out=squares)
            own = np.einsum("rnk,rnk->rn", squares, grouped)
            squared = u * u
            U = (squared * u).sum(1)
            psi = expit(-(scales * U[:, None, None] + own[:, None]))
            u += squared * (push * psi.sum(2)).sum(1, keepdims=True)
            squares *= (shares * psi).sum(1)[..., None]
            moved += Q
            v += np.matmul(pull, Q, out=pulled)
        self.step = max(self.step, to)

    def state(self) -> PatchState:
        return PatchState(
            self.problem,
            self.step,
            self.lam,
            self.eta,
            self.u.clone(),
            self.v.clone(),
            self.rate[:, None, None] * self.moved,
        )


class _Force:
    """The gradient of (O) at a state: -(3/N) [push_r w* + sum_k Q_kr y_k x_k]."""

    def __init__(self, state: PatchState):
        self.gram, n = state.problem.gram, state.problem.y.shape[1]
        scales, shares = _signals(state.problem, state.lam)
        psi = torch.sigmoid(-(state.V[:, None] + (scales * state.U[:, None])[..., None]))
        p = (shares[..., None] * psi).sum(1).repeat_interleave(state.problem.patches - 1, 1)
        self.noise = 3 / n * p[..., None] * state.v**2
        self.signal = 3 / n * state.u**2 * (shares * scales * psi.sum(2)).sum(1, keepdim=True)

    def norm(self) -> Float[Tensor, " R"]:
        inside = (self.noise * (self.gram @ self.noise)).sum((1, 2))
        return (inside + (self.signal**2).sum(1)).sqrt()


def _signals(problem: PatchProblem, lam: Tensor) -> tuple[Tensor, Tensor]:
    """For clean and attacked inputs: how much of U is in y f, and their share of the objective."""
    left = torch.stack([torch.ones_like(problem.gamma), 1 - problem.gamma], 1)
    return (problem.alpha[:, None] * left) ** 3, torch.stack([1 - lam, lam], 1)


def _each(name: str, value: Each, problem: PatchProblem, most: float = float("inf")) -> Tensor:
    each = torch.as_tensor(value, dtype=torch.float64).expand(len(problem)).clone()
    if not bool(((each >= 0) & (each <= most) & each.isfinite()).all()):
        raise AdvlabError(f"{name} between 0 and {most:g}", each.tolist())
    return each
