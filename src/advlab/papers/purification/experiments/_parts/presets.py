"""Finite presets in which purification can be seen, and the two phases that train them.

The asymptotic schedules of the paper (theory.sparse) do nothing useful at d = 256: the finite ones
here are named as what they are, with every deviation listed in docs/purification.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from .....attacks import PGD, Attack, Identity
from .....core.config import Config
from .....core.randomness import generators
from .....models import Stack
from .....threats import Ball
from .....threats.base import Norm
from .....training import L2L3, Fit, Hook, ModelSchedule, NeuronCap, Penalize, Project, fit
from ... import theory
from ...data import Concept, SparseCoding
from ...models import BiasGrowth, SymmetricReLU
from ...reductions import SymmetricAdversarial

Start = Literal["random", "dictionary"]
WALK = PGD(steps=3, step_size=1.0, random_start=False, jump=False)
"""The attack in training: the FGM point and two projected steps of the whole radius from it."""


class Phase(Config):
    """One phase of training: plain SGD with the paper's regulariser."""

    lr: PositiveFloat
    penalty: NonNegativeFloat
    """lambda of the paper."""
    steps: PositiveInt


class Preset(Config):
    """A size, a law of data and both phases."""

    data: SparseCoding
    width: PositiveInt
    tau: PositiveFloat
    norm: Norm = "l2"
    start: Start = "random"
    sigma0: PositiveFloat = 0.01
    dictionary_part: NonNegativeFloat = 0.0
    bias: BiasGrowth
    cap: PositiveFloat | None
    batch: PositiveInt = 300
    warmup: PositiveInt = 150
    clean: Phase
    adversarial: Phase

    @property
    def ball(self) -> Ball:
        return Ball(norm=self.norm, radius=self.tau)


def _grown(k: int, start: float, slope: float, lr: float, d: int) -> BiasGrowth:
    return BiasGrowth(start=start, slope=lr * slope / d, end=0.85 / sqrt(k))


_D, _K = 256, 30
_CLEAN = Phase(lr=3.0, penalty=2e-5, steps=1000)
PRESETS: dict[str, Preset] = {
    "random": Preset(
        data=SparseCoding(n=30_000, d=_D, k=_K, margin=1.0),
        width=5 * _D,
        tau=0.22,
        bias=_grown(_K, 0.035, 0.15, 3.0, _D),
        cap=2.2,
        clean=_CLEAN,
        adversarial=Phase(lr=3.0, penalty=1e-5, steps=600),
    ),
    "wide_margin": Preset(
        data=SparseCoding(n=30_000, d=_D, k=_K, margin=1.5),
        width=5 * _D,
        tau=0.30,
        bias=_grown(_K, 0.037, 0.18, 3.0, _D),
        cap=1.8,
        clean=_CLEAN,
        adversarial=Phase(lr=3.0, penalty=1e-5, steps=500),
    ),
    "dictionary": Preset(
        data=SparseCoding(n=30_000, d=_D, k=_K, margin=1.0),
        width=2 * _D,
        tau=0.22,
        start="dictionary",
        dictionary_part=0.8,
        bias=_grown(_K, 0.85 / sqrt(_K), 0.0, 2.0, _D),
        cap=None,
        clean=Phase(lr=2.0, penalty=2e-4, steps=600),
        adversarial=Phase(lr=3.0, penalty=1e-5, steps=500),
    ),
}
"""The settings of the digest, section 5.1: tuned there on one seed."""


def scaled(d: int) -> Preset:
    """The preset `random` at another d, with the powers of d that the theorems allow.

    k grows as d^0.4, inside the l2 window; tau as 1/sqrt(k); lambda as 1/d; the first bias as
    sqrt(log d); steps as T_c ~ d and T_g ~ k^2. Width is 5 d and the cap stays.
    """
    base = PRESETS["random"]
    k = round(_K * (d / _D) ** 0.4)
    start = base.bias.start * sqrt(log(d) / log(_D))
    clean, adversarial = base.clean, base.adversarial
    return base.model_copy(
        update={
            "data": base.data.model_copy(update={"d": d, "k": k}),
            "width": 5 * d,
            "tau": base.tau * sqrt(_K / k),
            "bias": _grown(k, start, 0.15, clean.lr, d),
            "clean": Phase(
                lr=clean.lr, penalty=clean.penalty * _D / d, steps=round(clean.steps * d / _D)
            ),
            "adversarial": Phase(
                lr=adversarial.lr,
                penalty=adversarial.penalty * _D / d,
                steps=round(adversarial.steps * (k / _K) ** 2),
            ),
        }
    )


def asymptotic(d: int, k: int, c0: float = 0.1, eta: float = 1.0, C: float = 0.05) -> Preset:
    """The paper's own schedules at a finite size, all open constants but C equal to 1.

    Nothing is said about them at sizes that can be run, and nothing good happens there (digest,
    section 5.3): the finite presets are what works. lambda is 0 below d = 16, where its formula is
    negative, and there is no noise then either.
    """
    facts = theory.regime(d, k, c0=c0, eta=eta)
    sigma0, times = 1 / d, facts.times
    start = theory.bias_start(d, sigma0)
    noise, later = (
        float(theory.noise_scale(t, 1.0, d, T_a=times["T_a"])) for t in (0.0, 2 * times["T_a"] + 1)
    )
    growth = BiasGrowth(
        start=min(start, theory.bias_end(k)),
        slope=eta * C / d,
        end=theory.bias_end(k),
        noise=noise,
        later=(int(times["T_a"]), later) if later > 0 else None,
    )
    return Preset(
        data=SparseCoding(n=30_000, d=d, k=k),
        width=round(d ** (1 + c0)),
        tau=facts.radius("robust", "l2"),
        sigma0=sigma0,
        bias=growth,
        cap=None,
        clean=Phase(lr=eta, penalty=facts.lam.value, steps=ceil(times["T_c"])),
        adversarial=Phase(lr=eta, penalty=facts.lam.value, steps=ceil(times["T_g"])),
    )


@dataclass(frozen=True)
class World:
    """R draws of concept, training pool, test points and initial network, in one precision."""

    preset: Preset
    seeds: Sequence[int]
    x: Tensor
    """(R, n, d), the pool; y is (R, n)."""
    y: Tensor
    M: Tensor
    """(R, d, D); w is (R, D)."""
    w: Tensor
    test_x: Tensor
    test_y: Tensor
    test_z: Tensor
    stream: str

    @classmethod
    def draw(
        cls,
        preset: Preset,
        seeds: Sequence[int],
        stream: str,
        tests: int = 2000,
        dtype: torch.dtype = torch.float32,
    ) -> "World":
        """Everything a replicate has comes from generators of the stream's name and its seed."""
        concepts = [preset.data.concept(rng) for rng in generators(stream, "concept", seeds=seeds)]
        pool = _points(preset.data, stream, "pool", seeds, concepts, preset.data.n)
        test = _points(preset.data, stream, "test", seeds, concepts, tests)
        M, w = (torch.stack(parts).to(dtype) for parts in zip(*concepts, strict=True))
        x, y, _ = (part.to(dtype) for part in pool)
        test_x, test_y, test_z = (part.to(dtype) for part in test)
        return cls(preset, list(seeds), x, y, M, w, test_x, test_y, test_z, stream)

    def networks(self, stream: str | None = None) -> Stack:
        """Networks at initialisation; another stream gives others for the same data."""
        preset, name = self.preset, stream or self.stream
        rngs = generators(name, "network", seeds=self.seeds)
        return Stack([self._network(preset, r, rng) for r, rng in enumerate(rngs)])

    def _network(self, preset: Preset, r: int, rng: torch.Generator) -> SymmetricReLU:
        bias, d, kept = preset.bias.at(0), preset.data.d, self.x.dtype
        sigma = preset.bias.noise * bias
        if preset.start == "random":
            return SymmetricReLU.draw(d, preset.width, preset.sigma0, bias, rng, sigma, kept)
        copies = preset.width // self.w.shape[1]
        return SymmetricReLU.dictionary(
            self.M[r].double(), self.w[r].double(), copies, preset.dictionary_part,
            preset.sigma0, bias, rng, sigma, kept,
        )  # fmt: skip

    def train_clean(self, nets: Stack, *hooks: Hook) -> Fit:
        """Algorithm 1: the bias grows as the preset says."""
        preset = self.preset
        return self.train(nets, preset.clean, preset.bias, None, None, *hooks)

    def train_adversarial(self, nets: Stack, *hooks: Hook, attack: Attack = WALK) -> Fit:
        """Algorithm 2: the bias stays at its end; from whatever network is given."""
        end = self.preset.bias.end
        fixed = self.preset.bias.model_copy(update={"start": end, "slope": 0.0})
        return self.train(nets, self.preset.adversarial, fixed, self.preset.ball, attack, *hooks)

    def train(
        self,
        nets: Stack,
        phase: Phase,
        bias: BiasGrowth,
        ball: Ball | None,
        attack: Attack | None,
        *hooks: Hook,
    ) -> Fit:
        """One phase with a bias schedule; clean without a ball, else against the attack."""
        preset, name = self.preset, "clean" if ball is None else "adversarial"
        capped = [] if preset.cap is None else [Project(NeuronCap(radius=preset.cap))]
        return fit(
            nets,
            self.x,
            self.y,
            steps=phase.steps,
            lr=phase.lr,
            batch=preset.batch,
            objective=SymmetricAdversarial(
                loss="logistic",
                ball=ball or Ball(norm="l2", radius=0.0),
                attack=attack or Identity(),
                warmup=0 if ball is None else preset.warmup,
                sampled=bias.noise > 0,
            ),
            hooks=[ModelSchedule(bias), *hooks, Penalize(L2L3(weight=phase.penalty)), *capped],
            rng=generators(self.stream, name, seeds=self.seeds),
        )


def _points(
    law: SparseCoding,
    stream: str,
    part: str,
    seeds: Sequence[int],
    concepts: Sequence[Concept],
    n: int,
) -> tuple[Tensor, Tensor, Tensor]:
    rngs = generators(stream, part, seeds=seeds)
    drawn = [law.sample(rng, n, concept) for rng, concept in zip(rngs, concepts, strict=True)]
    return tuple(torch.stack([getattr(points, name) for points in drawn]) for name in "xyz")  # type: ignore[return-value]
