"""Syn B: robust accuracy against the radius, for everything that could classify sparse codes.

Linear rules break at radii of 1/sqrt(d), polynomials of low degree with them, and so does the
tangent kernel (Theorem 5.6): low complexity is not robust. Classifiers that threshold the
coordinates <M_j, x> are robust up to about 1/sqrt(k), and this is where adversarial training goes;
clean training does not (claims 5, 6 and 16, here along the radius; Syn A decides them at tau).

Only the linear rule's curve is exact. All others are worst cases over the universal direction, FGM
and PGD from four starts, hence upper bounds of the robust accuracy: above all for the thresholded
oracle, whose jumps gradients do not see. A point that breaks at a radius counts as broken at all
larger ones, as it is. The ReLU oracle has rows w*_j M_j and one bias, as a network could.

B1 is our own rule, fixed before the first run. There, on `random`, the cubic oracle (which knows M
and w*, and answers mostly to entries of size 1) came out level with the adversarial network at tau.
"""

from collections.abc import Sequence

import polars as pl
import torch
from pydantic import PositiveInt
from torch import nn

from .... import lab
from ....core.randomness import generator
from ....report import Verdict, above, below, sample, within
from ....report.charts import AnyChart, curves, panels
from ....threats import Ball
from .. import measures
from ..models.oracles import PolynomialOracle, ThresholdedOracle, oracle_bias
from ._parts.clean_then_adversarial_claims import PRESET_ORDER, WORDS
from ._parts.linear_and_ntk_runs import RECIPES, exact, tangent
from ._parts.presets import World
from ._parts.two_phase_runs import TINY, direction, flagged, frozen
from ._parts.two_phase_runs import Case as SynCase

LINEAR, POLYNOMIAL, KERNEL = "linear (exact)", "polynomial, degree 3", "tangent kernel, adversarial"
THRESHOLDED, ORACLE = "thresholded oracle", "ReLU oracle"
CLEAN_NET, PURE_NET = "clean network", "adversarial network"
ORDER = (LINEAR, POLYNOMIAL, KERNEL, CLEAN_NET, PURE_NET, ORACLE, THRESHOLDED)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
"""Radii, in units of the preset's tau."""
NAME = "purification/syn_b"


def _claims(preset: str) -> dict[str, str]:
    said = {
        "5/curve": "The adversarial network beats the clean one at all radii from tau/2 on",
        "6/curve": "and is near the ReLU oracle at tau",
        "16/curve": "The linear rule breaks at tau",
        "B1": "Adversarial training beats all rules of low complexity at tau",
    }
    return {f"purification/{name}/{preset}": f"{text} ({WORDS[preset]})"
            for name, text in said.items()}  # fmt: skip


ABOUT = lab.About(
    paper="purification",
    item="Theorems 5.1, 5.3 and 5.6, experiment Syn B",
    title="Robust accuracy against the radius",
    seconds={"smoke": 5, "laptop": 420, "paper": 1000},
    claims={id: text for preset in PRESET_ORDER for id, text in _claims(preset).items()},
)


class Case(SynCase):
    """Fewer test points than Syn A: there are seven radii."""

    tests: PositiveInt = 600


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {"smoke": (2, TINY), "laptop": (5, {}), "paper": (10, {"tests": 2000})}[scale]
    return [
        Case(preset=preset, **some, **block)
        for block in lab.blocks(seeds or usual, 5)
        for preset in PRESET_ORDER
    ]


def compute(case: Case) -> pl.DataFrame:
    """Rows (seed, classifier, share, accuracy): the radius is share tau."""
    world = case.world(NAME)
    oracle = direction(world)
    linear = torch.stack([exact(world, oracle, world.preset.ball, share) for share in SHARES])
    rows = [_rows(world, LINEAR, linear.T.tolist())]
    for name, models in _classifiers(case, world).items():
        found = [_curve(world, r, one, case.walk) for r, one in enumerate(models)]
        rows.append(_rows(world, name, found))
    return pl.concat(rows)


def _rows(world: World, name: str, found: list[list[float]]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"seed": seed, "classifier": name, "share": share, "accuracy": accuracy}
            for seed, mine in zip(world.seeds, found, strict=True)
            for share, accuracy in zip(SHARES, mine, strict=True)
        ]
    )


def _classifiers(case: Case, world: World) -> dict[str, Sequence[measures.Nets | nn.Module]]:
    """All that are attacked, one a seed."""
    bias = oracle_bias(world.preset.data.k)
    hidden = list(zip(world.M, world.w, strict=True))
    nets = world.networks()
    world.train_clean(nets)
    clean = frozen(nets)
    world.train_adversarial(nets)
    few = {"features": 16, "steps": 10} if case.tiny else {}
    kernels = tangent(world, RECIPES["NTK, adversarial"], **few)
    return {
        POLYNOMIAL: [PolynomialOracle(M, w) for M, w in hidden],
        KERNEL: [kernels.replicate(r) for r in range(len(world.seeds))],
        CLEAN_NET: _firing(world, clean),
        PURE_NET: _firing(world, frozen(nets)),
        ORACLE: [measures.Nets.at((M * w).mT, bias) for M, w in hidden],
        THRESHOLDED: [ThresholdedOracle(M, w, bias) for M, w in hidden],
    }


def _firing(world: World, nets: measures.Nets) -> list[measures.Nets]:
    """Without the neurons that no point of the largest balls wakes: they add nothing there."""
    reach = SHARES[-1] * world.preset.tau
    found = []
    for x, weight, bias, sigma in zip(
        world.test_x, nets.weight, nets.bias, nets.sigma, strict=True
    ):
        # Rounding: a neuron within a few bits of its bias counts as one that fires.
        largest = (x @ weight.mT).abs().amax(0) + reach * weight.norm(dim=1)
        found.append(measures.Nets(weight[largest * (1 + 1e-4) >= bias], bias, sigma))
    return found


def _curve(world: World, r: int, model: measures.Nets | nn.Module, steps: int) -> list[float]:
    """The share of the test points that no attack breaks, at each radius."""
    x, y, way = world.test_x[r], world.test_y[r], direction(world)[r]
    with torch.no_grad():
        left = measures.margin_of(model, y)(x) < 0
    kept = [int(left.sum())]
    for share in SHARES[1:]:
        x, y = x[left], y[left]
        if len(y) == 0:
            break
        ball = Ball(norm=world.preset.norm, radius=share * world.preset.tau)
        rng = generator(NAME, "attack", share, world.seeds[r])
        left = measures.survival(model, x, y, ball, way, rng, steps).worst
        kept.append(int(left.sum()))
    kept += [0] * (len(SHARES) - len(kept))
    return [count / world.test_y.shape[1] for count in kept]


def figure(table: pl.DataFrame) -> AnyChart:
    known = pl.DataFrame({"classifier": list(ORDER)}).with_row_index("rank")
    rows = table.join(known, on="classifier").sort("rank", "share")
    charts = [
        curves(
            rows.filter(preset=preset), "share", "accuracy", "classifier",
            title=f"{WORDS[preset]}: what attacks leave", x_title="radius / tau",
            y_title="accuracy: upper bound of robust",
        )
        for preset in PRESET_ORDER
        if preset in table["preset"]
    ]  # fmt: skip
    return panels(charts, columns=2)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    return [one for preset in PRESET_ORDER for one in _decided(table.filter(preset=preset), preset)]


def _decided(table: pl.DataFrame, preset: str) -> list[Verdict]:
    claims = _claims(preset)
    wide = table.pivot(on="classifier", index=["seed", "share"], values="accuracy")
    at_tau = wide.filter(share=1.0)

    def say(name: str) -> tuple[str, str]:
        return f"purification/{name}/{preset}", claims[f"purification/{name}/{preset}"]

    def of(rows: pl.DataFrame, value: pl.Expr) -> pl.Series:
        return sample(rows.select("seed", value=value), "value")  # type: ignore[return-value]

    ahead = pl.col(PURE_NET) - pl.col(CLEAN_NET)
    radii = {
        f"radius {share:g} tau": of(wide.filter(share=share), ahead)
        for share in SHARES
        if share >= 0.5
    }
    simple = pl.max_horizontal(LINEAR, POLYNOMIAL, KERNEL)
    return [
        above(*say("5/curve"), radii, 0, what="worst accuracy, adversarial less clean network"),
        within(*say("6/curve"), of(at_tau, pl.col(ORACLE) - pl.col(PURE_NET)), -0.12, 0.12,
               what="worst accuracy, ReLU oracle less adversarial network"),
        flagged(
            below(*say("16/curve"), of(at_tau, pl.col(LINEAR)), 0.1,
                  what="exact robust accuracy of the linear rule"),
            preset,  # type: ignore[arg-type]
        ),
        above(*say("B1"), of(at_tau, pl.col(PURE_NET) - simple), 0,
              what="worst accuracy, adversarial network less the best of linear rule, "
                   "polynomial and tangent kernel,"),
    ]  # fmt: skip
