"""Finite settings in which purification can be seen, and the two phases that train them.

The asymptotic schedules of the paper (`theory.schedules`) learn nothing useful at d = 256. The
finite ones here work there; the paper's README lists every deviation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from .....attacks import FGM, PGD, Attack, Identity
from .....core.config import Config
from .....core.randomness import generators
from .....models import Stack
from .....threats import Ball
from .....threats.base import Norm
from .....training import L2L3, Fit, Hook, ModelSchedule, NeuronCap, Penalize, Project, fit
from ...data import Concept, SparseCoding
from ...measures import label_direction
from ...models import BiasGrowth, SymmetricReLU, pure_features
from ...reductions import SymmetricAdversarial

Start = Literal["random", "dictionary"]
TRAINING_ATTACK = PGD(steps=3, step_size=1.0, random_start=False, jump=False)
"""The attack in training: the FGM point and two projected steps of the whole radius from it."""
PAPER_FGM = FGM(keep_worst=False)
"""FGM as section 4.2 defines it: the step is always taken. Its cut-off, 1/poly(d) in the dual norm
of grad f, is left at 0: the loss scales gradients, and those of exactly 0 stay either way."""


class Phase(Config):
    """One phase of training: plain SGD with the paper's regulariser.

    Args:
        lr: the learning rate eta.
        penalty: lambda, the weight of the regulariser (section 4).
        steps: how many steps.
    """

    lr: PositiveFloat
    penalty: NonNegativeFloat
    steps: PositiveInt


class Preset(Config):
    """One setting: the data, the network, the threat and both phases of training.

    Args:
        data: the law of sparse coding.
        width: m, the number of neurons.
        tau: the radius of the attack, in training and in evaluation.
        norm: the norm of the attack.
        start: Gaussian neurons ("random"), or neurons near the atoms ("dictionary").
        sigma0: the standard deviation of the Gaussian part of the start.
        dictionary_part: the length of each atom in a "dictionary" start.
        bias: how the bias (and the noise inside) grows in the clean phase.
        cap: the largest length of a neuron, or None.
        batch: examples per step.
        warmup: steps over which the radius grows to tau in adversarial training.
        clean: the phase of Algorithm 1.
        adversarial: the phase of Algorithm 2.
    """

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
        """The threat: norm and radius tau."""
        return Ball(norm=self.norm, radius=self.tau)


def _grown(k: int, start: float, slope: float, lr: float, d: int) -> BiasGrowth:
    return BiasGrowth(start=start, slope=lr * slope / d, end=0.85 / sqrt(k))


_D, _K = 256, 30
BLOCK = 30_000 * _D
"""Numbers of z that are drawn at a time."""
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
"""By name. They were tuned on one seed: README, "Which settings, and why"."""


def scaled(d: int) -> Preset:
    """The preset `random` at another d, with the powers of d that the theorems allow.

    k grows as d^0.4, inside the l2 window of Corollary F.3; tau as 1/sqrt(k); lambda as 1/d; steps
    as T_c ~ d and T_g ~ k^2, and the pool as d, so that clean training sees each example as often
    at every d (a pool of 30,000 is learnt by heart at d = 1024). sigma_0 falls as 1/sqrt(d), so
    that the start is no longer than at d = 256, and the first bias is as sigma_0 sqrt(log d). Width
    is 5 d and the cap stays.

    Args:
        d: the dimension.
    """
    base = PRESETS["random"]
    k = round(_K * (d / _D) ** 0.4)
    shorter = sqrt(_D / d)
    start = base.bias.start * shorter * sqrt(log(d) / log(_D))
    clean, adversarial = base.clean, base.adversarial
    return base.model_copy(
        update={
            "data": base.data.model_copy(update={"n": round(base.data.n * d / _D), "d": d, "k": k}),
            "width": 5 * d,
            "sigma0": base.sigma0 * shorter,
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


@dataclass(frozen=True)
class SparseProblem:
    """R replicates of a sparse coding problem: concept, training pool, test points, networks.

    `draw` makes one; `networks` gives the networks at initialisation, `train_clean` and
    `train_adversarial` are Algorithms 1 and 2.

    Under l2 threats a rotation changes nothing: lengths, balls and products are the same. So where
    M is orthogonal all is expressed in its basis, in which inputs without noise are sparse: x is
    M'x, the network's weights are W M, and M itself is the identity.
    """

    preset: Preset
    seeds: Sequence[int]
    x: Tensor
    """(R, n, d), the training pool; y is (R, n)."""
    y: Tensor
    M: Tensor
    """(R, d, D), the dictionaries; w is (R, D)."""
    w: Tensor
    test_x: Tensor
    test_y: Tensor
    test_z: Tensor
    stream: str
    basis: Tensor | None = None
    """(R, d, d): the dictionaries as drawn, if all is expressed in their bases."""

    @classmethod
    def draw(
        cls,
        preset: Preset,
        seeds: Sequence[int],
        stream: str,
        tests: int = 2000,
        dtype: torch.dtype = torch.float32,
        rotate: bool = True,
    ) -> "SparseProblem":
        """Draw R problems; what replicate r has is fixed by the stream's name and its seed.

        Args:
            preset: the setting.
            seeds: one per replicate.
            stream: the name of the random streams.
            tests: test points per replicate.
            dtype: of all tensors.
            rotate: go to the basis of the dictionary where that changes nothing.
        """
        concepts = [preset.data.concept(rng) for rng in generators(stream, "concept", seeds=seeds)]
        basis = None
        if rotate and preset.norm == "l2" and preset.data.dictionary == "orthogonal":
            basis = torch.stack([M for M, _ in concepts])
            concepts = [Concept(torch.eye(preset.data.d).to(M), w) for M, w in concepts]
        pool = preset.data
        x, y = _points(pool, stream, "pool", seeds, concepts, pool.n, "xy", dtype)
        test_x, test_y, test_z = _points(pool, stream, "test", seeds, concepts, tests, "xyz", dtype)
        M, w = (torch.stack(parts).to(dtype) for parts in zip(*concepts, strict=True))
        return cls(preset, list(seeds), x, y, M, w, test_x, test_y, test_z, stream, basis)

    @property
    def direction(self) -> Tensor:
        """M w*, the direction of the dense mixture and of the universal attack: (R, d)."""
        return label_direction(self.M, self.w)

    def unfiltered(self, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs and labels of n draws that no margin filters, and the share that it would keep."""
        law = self.preset.data.model_copy(update={"margin": 0.0})
        concepts = [Concept(M.double(), w.double()) for M, w in zip(self.M, self.w, strict=True)]
        x, y, z = _points(law, self.stream, "unfiltered", self.seeds, concepts, n, "xyz")
        score = (z @ self.w.double()[:, :, None])[..., 0].abs()
        kept = (score > self.preset.data.margin).double().mean(1)
        return x.to(self.x), y.to(self.x), kept

    def networks(self) -> Stack:
        """The networks at initialisation, one per replicate."""
        rngs = generators(self.stream, "network", seeds=self.seeds)
        return Stack([self._network(r, rng) for r, rng in enumerate(rngs)])

    def _network(self, r: int, rng: torch.Generator) -> SymmetricReLU:
        preset, mean = self.preset, None
        bias = preset.bias.at(0)
        if preset.start == "dictionary":
            copies = preset.width // self.w.shape[1]
            M, w = self.M[r].double(), self.w[r].double()
            mean = pure_features(M, w, copies, preset.dictionary_part)
        net = SymmetricReLU.draw(
            preset.data.d, preset.width, preset.sigma0, bias, rng,
            sigma=preset.bias.noise * bias, dtype=torch.float64,
        )  # fmt: skip
        weight = net.weight.detach()
        if self.basis is not None:
            weight = weight @ self.basis[r]
        start = weight if mean is None else weight + mean
        return SymmetricReLU(start.to(self.x), bias, preset.bias.noise * bias)

    def train_clean(self, nets: Stack, *hooks: Hook) -> Fit:
        """Algorithm 1: the bias grows as the preset says."""
        preset = self.preset
        return self.train(nets, preset.clean, preset.bias, None, None, *hooks)

    def train_adversarial(self, nets: Stack, *hooks: Hook, attack: Attack = TRAINING_ATTACK) -> Fit:
        """Algorithm 2: the bias stays at its end; from whatever network is given."""
        end = self.preset.bias.end
        fixed = self.preset.bias.model_copy(update={"start": end, "slope": 0.0})
        return self.train(nets, self.preset.adversarial, fixed, self.preset.ball, attack, *hooks)

    def train_control(self, nets: Stack, *hooks: Hook) -> Fit:
        """Algorithm 2 without its attack: as many more clean steps, on the same batches."""
        end = self.preset.bias.end
        fixed = self.preset.bias.model_copy(update={"start": end, "slope": 0.0})
        phase = self.preset.adversarial
        return self.train(nets, phase, fixed, None, None, *hooks, name="adversarial")

    def train(
        self,
        nets: Stack,
        phase: Phase,
        bias: BiasGrowth,
        ball: Ball | None,
        attack: Attack | None,
        *hooks: Hook,
        name: str | None = None,
    ) -> Fit:
        """One phase with a bias schedule; clean without a ball, else against the attack.

        `name` is that of the stream of batches: "clean" or "adversarial" if left out.
        """
        preset, name = self.preset, name or ("clean" if ball is None else "adversarial")
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
    names: str,
    dtype: torch.dtype = torch.float64,
) -> list[Tensor]:
    """The named tensors of n points per seed, drawn in blocks that the memory does not notice."""
    rows = max(1, BLOCK // law.D)
    sizes = [min(rows, n - first) for first in range(0, n, rows)]

    def drawn(rng: torch.Generator, concept: Concept) -> list[Tensor]:
        blocks = []
        for size in sizes:
            points = law.sample(rng, size, concept)
            blocks.append([getattr(points, name).to(dtype) for name in names])
        return [torch.cat(parts) for parts in zip(*blocks, strict=True)]

    rngs = generators(stream, part, seeds=seeds)
    found = [drawn(rng, concept) for rng, concept in zip(rngs, concepts, strict=True)]
    return [torch.stack(parts) for parts in zip(*found, strict=True)]
