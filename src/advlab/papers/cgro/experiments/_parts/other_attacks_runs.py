"""Networks under other attacks: exact checks on the way, and critical radii at the end.

An input's critical radius is found by bisection. f(cX) = c^3 f(X), so X in a ball of radius r is
X/r in one of radius 1, and each row has a radius of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from ..... import lab
from .....attacks import GTA, PGD, Attack, FakeSignal, SignalPatch
from .....core.randomness import Rng, generator, generators
from .....losses import ModelLoss, logistic, margin
from .....models import Stack
from .....threats import Ball
from ...data import Patches, PatchPoints
from ...models import PatchCNN
from ...reductions import patch_law
from ...reductions.patch_dynamics import PatchState, trajectory
from ...reductions.patch_errors import FreshNoise, network, test_inputs, train_inputs
from .patch_runs import FILTERS, RATE, SHARE

NAME = "cgro/s5"
HELD = tuple(float(share) for share in np.geomspace(0.02, 1, 120))
"""Radii of the curves, as shares of delta."""
SCHEMA = {"seed": pl.Int64, "quantity": pl.String, "share": pl.Float64, "value": pl.Float64}
Row = tuple[int, str, float, float]


class Case(lab.Case):
    d: PositiveInt = 1000
    n: PositiveInt = 20
    lam: NonNegativeFloat = SHARE
    eta: PositiveFloat = RATE
    steps: PositiveInt = 40_000
    tested: PositiveInt = 60
    restarts: PositiveInt = 30
    walk: PositiveInt = 20
    """Steps of PGD."""
    halvings: PositiveInt = 11

    @property
    def law(self) -> Patches:
        return Patches.scaled(n=self.n, d=self.d)

    @property
    def cost(self) -> float:
        return self.replicates * (self.steps + self.restarts * self.walk * self.halvings) / 1e6


def attacked_networks(case: Case) -> pl.DataFrame:
    """What is exact, what each attack breaks at full budget, and the critical radii, as rows."""
    law, seeds = case.law, case.seeds
    points = PatchPoints(*law.sample_stack(generators(NAME, "data", seeds=seeds)))
    rngs = generators(NAME, "start", seeds=seeds)
    start = torch.stack([PatchCNN.draw(law.d, FILTERS, law.d**-0.5, r).weight for r in rngs])
    run = _Run(law, points, start.detach())
    state = run.train(case)
    rows = [(seed, name, 0.0, float(value[r])) for name, value in run.checks.items()
            for r, seed in enumerate(seeds)]  # fmt: skip
    weight = state.lift(law, points, run.start)
    for r, seed in enumerate(seeds):
        own = PatchPoints(*(part[r] for part in points))
        fresh = law.sample(generator(NAME, "fresh", seed), n=10 * case.tested)
        for name, drawn in (("train", own), ("test", fresh)):
            found = full_budget(PatchCNN(weight[r]), drawn, law)
            rows += [(seed, f"{attack} {name}", 1.0, held) for attack, held in found.items()]
    for name, radii in _radii(case, state).items():
        rows += [row for r, seed in enumerate(seeds) for row in _curve(seed, name, radii[r])]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@dataclass
class _Run:
    """Training in closed coordinates, held against d-vectors and autograd on the way."""

    law: Patches
    points: PatchPoints
    start: Tensor
    checks: dict[str, Tensor] = field(default_factory=dict)
    """One number per replicate."""

    def train(self, case: Case) -> PatchState:
        """Every step of u is seen; at some steps the network is made in d dimensions."""
        problem = patch_law.of_points(self.law, self.points, self.start)
        looks = {case.steps * part // 1000 for part in (0, 1, 25, 250, 500, 750, 999)}
        states = trajectory(problem, case.lam, case.eta, range(case.steps + 1))
        self.checks |= self._gta()
        state, least = next(states), torch.full_like(problem.alpha, torch.inf)
        for after in states:
            least = torch.minimum(least, (after.u - state.u).amin(1))
            if state.step in looks:
                self._compare(state, after)
            state = after
        self.checks["smallest step of u"] = least
        return state

    def _gta(self) -> dict[str, Tensor]:
        """The generic attack (A) against its closed form."""
        law, (x, y, signal) = self.law, self.points
        attack = GTA(surrogate=SignalPatch(law.direction()), gamma=law.gamma)
        ball, loss = Ball(norm="l2", radius=law.delta), lambda x: x.flatten(1)[:, 0]
        found = attack(loss, x.flatten(0, 1), ball, rng=generator(NAME)).x.reshape(x.shape)
        place = torch.nn.functional.one_hot(signal, law.P).bool()
        closed = torch.where(
            place[..., None], law.alpha * (1 - law.gamma) * y[..., None, None] * law.direction(), x
        )
        move = found - x
        return {
            "GTA closed form": (found - closed).abs().flatten(1).amax(1),
            "GTA length": (move.flatten(2).norm(dim=2) - law.delta).abs().amax(1),
            "GTA noise": (move * ~place[..., None]).abs().flatten(1).amax(1),
        }

    def _compare(self, state: PatchState, after: PatchState) -> None:
        """Gradient and parts of y f at one step: the largest differences so far, per replicate."""
        weight, moved = (one.lift(self.law, self.points, self.start) for one in (state, after))
        attacked, y = self.law.gta(self.points), self.points.y
        for r, (w, by_hand) in enumerate(zip(weight, (moved - weight), strict=True)):
            net, lam, eta = PatchCNN(w), float(state.lam[r]), float(state.eta[r])
            clean, moved_f = net(self.points.x[r]), net(attacked[r])
            objective = (1 - lam) * logistic(clean, y[r]) + lam * logistic(moved_f, y[r])
            (grad,) = torch.autograd.grad(objective.mean(), net.weight)
            self._note("gradient", r, (by_hand / -eta - grad).norm() / grad.norm())
            for f, gta in ((clean, False), (moved_f, True)):
                self._note("decomposition", r, (y[r] * f - state.margins(gta)[r]).abs().amax())

    def _note(self, name: str, r: int, value: Tensor) -> None:
        known = self.checks.setdefault(name, torch.zeros(len(self.start), dtype=torch.float64))
        known[r] = torch.maximum(known[r], value.detach())


def full_budget(net: PatchCNN, points: PatchPoints, law: Patches) -> dict[str, float]:
    """The share of inputs that stand GTA, and a fake signal in any noise patch, at budget delta."""
    ball, w = Ball(norm="l2", radius=law.delta), law.direction()
    loss = ModelLoss(net, points.y, margin)
    attacks: dict[str, Sequence[Attack]] = {
        "GTA": [GTA(surrogate=SignalPatch(w), gamma=law.gamma)],
        "fake signal": [FakeSignal(direction=tuple(w.tolist()), noise=j) for j in range(1, law.P)],
    }
    found = {}
    for name, tried in attacks.items():
        worst = torch.stack([one(loss, points.x, ball, rng=generator(NAME)).loss for one in tried])
        found[name] = float((worst.amax(0) < 0).double().mean())
    return found


def _radii(case: Case, state: PatchState) -> dict[str, Tensor]:
    """Critical radii over delta of training and fresh inputs, (R, n)."""
    rngs = generators(NAME, "noise", seeds=case.seeds)
    fresh = test_inputs(state, FreshNoise.draw(state, case.tested, rngs))
    x, ones = torch.cat([train_inputs(state), fresh], 1), torch.ones_like(fresh[:, :, 0, 0])
    y = torch.cat([state.problem.y, ones], 1)
    attack = PGD(steps=case.walk, step_size=0.2, restarts=case.restarts)
    rngs = generators(NAME, "pgd", seeds=case.seeds)
    delta = state.problem.alpha * state.problem.gamma
    radii = critical_radii(network(state), x, y, delta, attack, case.halvings, rngs)
    return {"train": radii[:, : case.n], "test": radii[:, case.n :]}


def critical_radii(
    model: Stack, x: Tensor, y: Tensor, delta: Tensor, attack: Attack, halvings: int, rng: Rng
) -> Tensor:
    """The least radius at which the attack breaks each input (R, n), as a share of delta <= 1.

    For networks with f(cX) = c^q f(X). Shares are known to 2^-halvings, from above.
    """
    rows = (x / delta[:, None, None, None]).flatten(0, 1)
    loss, ball = ModelLoss(model, y.flatten(), margin), Ball(norm="l2", radius=1.0)
    low, high = torch.zeros_like(rows[:, 0, 0]), torch.ones_like(rows[:, 0, 0])
    for _ in range(halvings):
        middle = (low + high) / 2
        broken = attack(loss, rows / middle[:, None, None], ball, rng=rng).loss >= 0
        low, high = torch.where(broken, low, middle), torch.where(broken, middle, high)
    return high.reshape(y.shape)


def _curve(seed: int, name: str, radii: Tensor) -> list[Row]:
    """Of one replicate: the median critical radius, where 90 % still hold, where 10 % do, and the
    share that holds at each radius."""
    levels = {"median": 0.5, "first tenth": 0.1, "last tenth": 0.9}
    return [
        *((seed, f"{at} {name}", 0.0, float(radii.quantile(q))) for at, q in levels.items()),
        *((seed, f"PGD {name}", share, float((radii > share).double().mean())) for share in HELD),
        (seed, f"PGD {name} at 0.2", 0.2, float((radii > 0.2).double().mean())),
    ]
