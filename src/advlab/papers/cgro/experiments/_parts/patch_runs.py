"""What the patch experiments share: setting A, a run with its clocks, and its predicted times."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from .....core.randomness import generators
from ... import theory
from ...data import Patches
from ...reductions.patch_dynamics import PatchState, log_steps, trajectory
from ...reductions.patch_errors import FreshNoise
from ...reductions.patch_law import PatchProblem

FILTERS = 10
RATE = 0.02
SHARE = 0.5
"""m, eta and lambda of setting A."""

Numbers = np.ndarray
Look = Callable[[PatchState], dict[str, Tensor]]


@dataclass
class EventTimes:
    """The first recorded step at which each event was seen; infinity if it was not."""

    signal: Tensor
    """max_r alpha u_r >= 1: T_0, one per replicate."""
    memorised: Tensor
    """V_i >= 1: T_1,i, one per example of each replicate."""
    half: Tensor
    """median_i V_i >= 1/2, one per replicate."""

    @classmethod
    def of(cls, problem: PatchProblem) -> "EventTimes":
        never = torch.full_like(problem.y, torch.inf)
        return cls(never[:, 0].clone(), never, never[:, 0].clone())

    def record(self, state: PatchState) -> None:
        V = state.V
        reached_now = (
            (self.signal, state.problem.alpha * state.u.amax(1) >= 1),
            (self.memorised, V >= 1),
            (self.half, V.median(1).values >= 0.5),
        )
        for times, reached in reached_now:
            times[reached & times.isinf()] = state.step


def run(
    problem: PatchProblem,
    lam: float | Tensor,
    eta: float | Tensor,
    steps: int,
    look: Look,
    shown: Collection[int],
) -> tuple[EventTimes, list[tuple[int, dict[str, Tensor]]]]:
    """Train, record events at every step to 100 and every percent after, and look where asked."""
    events, seen = EventTimes.of(problem), []
    for state in trajectory(problem, lam, eta, {*log_steps(steps, 1.01), *shown}):
        events.record(state)
        if state.step in shown:
            seen.append((state.step, look(state)))
    return events, seen


def tidy(seen: Sequence[tuple[int, dict[str, Tensor]]], columns: dict[str, Any]) -> pl.DataFrame:
    """One row per replicate and step; `columns` are the same at every step."""
    return pl.concat(
        pl.DataFrame(
            {"step": step, **columns} | {name: value.numpy() for name, value in found.items()}
        )
        for step, found in seen
    )


def phases(state: PatchState) -> dict[str, Tensor]:
    """Signal, noise and training errors of each replicate."""
    V = state.V
    return {
        "signal": state.signal,
        "alpha u": state.problem.alpha * state.u.amax(1),
        "smallest V": V.amin(1),
        "median V": V.median(1).values,
        "mean V": V.mean(1),
        "largest V": V.amax(1),
        "loss": state.loss,
        "clean train": state.errors(False),
        "GTA train": state.errors(True),
    }


class Tester:
    """Clean and GTA test errors, on the same fresh noise at every step."""

    def __init__(self, n: int, *name: object, seeds: Sequence[int]):
        self.n, self.name, self.seeds = n, name, seeds
        self.fresh: FreshNoise | None = None

    def noise(self, state: PatchState) -> Tensor:
        """V of the fresh inputs."""
        if self.fresh is None:
            rngs = generators(*self.name, "fresh", seeds=self.seeds)
            self.fresh = FreshNoise.draw(state, self.n, rngs)
        return self.fresh.noise(state)

    def __call__(self, state: PatchState) -> dict[str, Tensor]:
        noise = self.noise(state)
        return {
            "clean test": (state.signal[:, None] + noise <= 0).double().mean(1),
            "GTA test": (state.residue[:, None] + noise <= 0).double().mean(1),
        }


def signal_times(problem: PatchProblem, lam: Tensor, eta: Tensor, form: str = "sharp") -> Numbers:
    """The predicted T_0 of each replicate."""
    parts = (part.numpy() for part in (problem.u.amax(1), problem.alpha, eta, lam))
    return theory.signal_time(*parts, form=form)


def memory_times(problem: PatchProblem, lam: Tensor, eta: Tensor, form: str = "sharp") -> Numbers:
    """The predicted T_1,i of each example of each replicate."""
    N = problem.y.shape[1]
    norms = problem.gram.diagonal(dim1=1, dim2=2).reshape(len(problem), N, -1).numpy()
    v = problem.v.reshape(len(problem), N, problem.patches - 1, -1).numpy()
    return np.stack(
        [
            theory.memorisation_times(v[r], norms[r], float(eta[r]), float(lam[r]), form)
            for r in range(len(problem))
        ]
    )


def race_numbers(laws: Sequence[Patches], problem: PatchProblem) -> tuple[Numbers, Numbers]:
    """rho of each replicate: the typical form (c = 2.5), and the one measured at its own start."""
    N, d, alpha, sigma, gamma = (
        np.array([getattr(law, name) for law in laws], dtype=float)
        for name in ("n", "d", "alpha", "sigma", "gamma")
    )
    v0 = problem.largest.median(1).values.numpy()
    m = problem.u.shape[1]
    typical = theory.race_number(N, d, alpha, sigma, gamma, sigma0=d**-0.5, m=m, P=problem.patches)
    return typical, theory.race_number(N, d, alpha, sigma, gamma, v0=v0)


def middle(times: Numbers | Tensor) -> Numbers:
    """The median over the examples of each replicate, infinity if most have no time."""
    return np.sort(np.asarray(times), axis=1)[:, (np.shape(times)[1] - 1) // 2]


def ratios(observed: Tensor, predicted: Numbers) -> Numbers:
    """Observed over predicted times, infinity where the event was not seen."""
    seen = observed.numpy()
    known = np.isfinite(seen) & np.isfinite(predicted)
    return np.where(known, seen / np.where(known, predicted, 1.0), np.inf)
