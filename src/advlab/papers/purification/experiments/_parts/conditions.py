"""The conditions of the theorems at a preset, as assumptions of verdicts."""

import math
from collections.abc import Iterable, Mapping

import polars as pl

from .....core.randomness import generator
from .....report import Assumption
from ... import theory
from ...data import SparseCoding
from ...data.sparse_coding import SPIKE
from .presets import Preset

THEOREMS = "theorems"
"""The name of the assumption that claims of theorems need: all conditions of their side hold."""
NTK = "tangent kernel window"
SHOWN = ("k <= d^0.3999", "m > d", "sigma_0", "lambda near", "noise", "sx <= d", "tau at", "T_f",
         "T_g", "share of draws")  # fmt: skip
"""Conditions whose values stand in the scope of a verdict, by how their names begin."""
REDUCED = "d = 256 where theorems want d to infinity; draws of small |<w*, z>| rejected"
"""What the presets make smaller than the paper."""


def assumptions_of(presets: Mapping[str, Preset]) -> list[Assumption]:
    """How many conditions of the theorems hold, and what was reached of those in `SHOWN`.

    Args:
        presets: the settings of the runs, by name. Of each condition the numbers are shown of the
            setting that is furthest from it, the first of those that are equally far.
    """
    found = {name: conditions(preset) for name, preset in presets.items()}
    held = [one.satisfied for some in found.values() for one in some]
    share = sum(held) / max(len(held), 1)
    every = Assumption(
        name=THEOREMS,
        condition="all of their conditions, open constants 1; share that holds",
        reached=share,
        holds=share == 1,
    )
    worst: dict[str, tuple[str, theory.Condition]] = {}
    for name, some in found.items():
        for one in some:
            if one.name.startswith(SHOWN) and (
                one.name not in worst or _excess(one) > _excess(worst[one.name][1])
            ):
                worst[one.name] = name, one
    return [every, *(_shown(name, one) for name, one in worst.values())]


def _shown(name: str, one: theory.Condition) -> Assumption:
    asked = f"{one.relation} {one.limit:.3g}, at {name}"
    return Assumption(name=one.name, condition=asked, reached=one.value, holds=one.satisfied)


def _excess(one: theory.Condition) -> float:
    """By what factor a condition is missed; below 1 where it holds."""
    high, low = one.value, one.limit
    if one.relation.startswith(">"):
        high, low = low, high
    if low > 0:
        return high / low
    return 0.0 if one.satisfied else math.inf


def conditions(preset: Preset) -> tuple[theory.Condition, ...]:
    """The conditions of Theorems 5.1 to 5.4 at a preset."""
    law = preset.data
    return theory.run_conditions(
        law.d, law.k, width=preset.width, penalty=preset.clean.penalty, sigma0=preset.sigma0,
        noise=preset.bias.noise, tau=preset.tau, norm=preset.norm, rate=preset.clean.lr,
        clean_steps=preset.clean.steps, adversarial_steps=preset.adversarial.steps,
        sx=noise_size(law), batch_share=min(preset.batch / law.n, 1.0), kept=kept_share(law),
    )  # fmt: skip


def noise_size(law: SparseCoding) -> float:
    """sigma_x of Assumption 2.1: the least that bounds the Gaussian noise, sx^2/d in each
    coordinate, and the spikes, whose squares are spikes k^-1.002/d on average."""
    return max(law.sx, math.sqrt(law.spikes) * law.k**-SPIKE)


def kept_share(law: SparseCoding, draws: int = 4000) -> float:
    """The share of draws whose |<w*, z>| exceeds the margin; 1 where nothing is filtered."""
    if law.margin == 0:
        return 1.0
    rng = generator("purification/kept share")
    points = law.model_copy(update={"margin": 0.0}).sample(rng, draws)
    return float(((points.z @ points.w).abs() > law.margin).double().mean())


def kernel_window(presets: Iterable[Preset]) -> Assumption:
    """Theorem 5.6 and G.1: linf radius d^-c6 and k between d^(c6/100) and d^(0.5 - c6/100)."""
    worst = 0.0
    holds = True
    for preset in presets:
        d, k = preset.data.d, preset.data.k
        # An l2 ball of radius tau holds the linf ball of radius tau/sqrt(d).
        tau = preset.tau if preset.norm == "linf" else preset.tau / math.sqrt(d)
        c6 = -math.log(tau) / math.log(d)
        worst = max(worst, math.log(k) / math.log(d) - (0.5 - c6 / 100))
        holds = holds and d ** (c6 / 100) <= k <= d ** (0.5 - c6 / 100)
    return Assumption(
        name=NTK,
        condition="k between d^(c6/100) and d^(0.5 - c6/100) at the linf radius d^-c6; "
        "excess of the exponent",
        reached=worst,
        holds=holds,
    )


def presets_of(table: pl.DataFrame, known: Mapping[str, Preset]) -> dict[str, Preset]:
    """The presets that a table has rows of."""
    return {name: known[name] for name in table["preset"].unique(maintain_order=True).to_list()}
