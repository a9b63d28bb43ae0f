r"""Robust accuracy against the radius, for everything that could classify sparse codes.

Section 3: linear rules break at l2 radii of $1/\sqrt{d}$. So do polynomials of low degree and the
tangent kernel (Theorem 5.6 and Corollary 5.7, in linf): low complexity is not robust. Classifiers
that threshold the coordinates <M_j, x> are robust up to about $1/\sqrt{k}$, and this is where
adversarial training goes (Theorem 5.3), while clean training does not (Theorem 5.1c).
`purification/clean_then_adversarial` decides this at tau, here it is along the radius.

Only the linear rule's curve is exact. All others are worst cases over the universal direction, FGM
and PGD from four starts, hence upper bounds of the robust accuracy: above all for the thresholded
oracle, whose jumps gradients do not see. A point that breaks at a radius counts as broken at all
larger ones, as it is. The ReLU oracle has rows w*_j M_j and one bias, as a network could.

The claim `simple_rules` is a question of ours.
"""

from collections.abc import Sequence

import polars as pl
import torch
from pydantic import PositiveInt
from torch import nn

from .... import lab
from ....core.randomness import generator
from ....report import Assumption, Claim, Claims, Verdict, empirical, ours, sample
from ....report.charts import AnyChart, curves, panels
from ....threats import Ball
from .. import measures
from ..models.oracles import PolynomialOracle, ThresholdedOracle, oracle_bias
from ._parts.clean_then_adversarial_claims import PRESET_ORDER, WORDS
from ._parts.conditions import REDUCED, assumptions_of, presets_of
from ._parts.linear_and_ntk_runs import RECIPES, linear_accuracy, tangent
from ._parts.presets import PRESETS, SparseProblem
from ._parts.two_phase_runs import TINY, each_net, frozen, with_theory_note
from ._parts.two_phase_runs import Case as TwoPhaseCase

LINEAR, POLYNOMIAL, KERNEL = "linear (exact)", "polynomial, degree 3", "tangent kernel, adversarial"
THRESHOLDED, ORACLE = "thresholded oracle", "ReLU oracle"
CLEAN_NET, PURE_NET = "clean network", "adversarial network"
ORDER = (LINEAR, POLYNOMIAL, KERNEL, CLEAN_NET, PURE_NET, ORACLE, THRESHOLDED)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
"""Radii, in units of the preset's tau."""
NAME = "purification/syn_b"


def _claims(preset: str) -> dict[str, Claim]:
    said = {
        "5": (empirical, "The adversarial network beats the clean one at all radii from tau/2 on"),
        "6": (ours, "is within 0.12 of the ReLU oracle at tau, and more than 0.3 above the clean "
              "one"),
        "16": (empirical, "The linear rule keeps less than 0.1 at tau"),
        "simple_rules": (ours, "Adversarial training beats all rules of low complexity at tau"),
    }  # fmt: skip
    return {
        f"{name}/{preset}": kind(f"{text} ({WORDS[preset]})") for name, (kind, text) in said.items()
    }


ABOUT = lab.About(
    paper="purification",
    item="Section 3, Theorems 5.1, 5.3 and 5.6",
    title="Robust accuracy against the radius",
    seconds={"smoke": 5, "laptop": 120, "paper": 1000},
    looks=2,
    reduced=dict.fromkeys(("laptop", "paper"), REDUCED),
    claims={label: text for preset in PRESET_ORDER for label, text in _claims(preset).items()},
)


class Case(TwoPhaseCase):
    """Fewer test points than for one radius: there are seven."""

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
    problem = case.problem(NAME)
    oracle = problem.direction
    linear = torch.stack(
        [linear_accuracy(problem, oracle, problem.preset.ball, share) for share in SHARES]
    )
    rows = [_rows(problem, LINEAR, linear.T.tolist())]
    for name, models in _classifiers(case, problem).items():
        found = [_curve(problem, r, one, case.pgd_steps) for r, one in enumerate(models)]
        rows.append(_rows(problem, name, found))
    return pl.concat(rows)


def _rows(problem: SparseProblem, name: str, found: list[list[float]]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"seed": seed, "classifier": name, "share": share, "accuracy": accuracy}
            for seed, mine in zip(problem.seeds, found, strict=True)
            for share, accuracy in zip(SHARES, mine, strict=True)
        ]
    )


def _classifiers(
    case: Case, problem: SparseProblem
) -> dict[str, Sequence[measures.Nets | nn.Module]]:
    """All that are attacked by name, one model per seed."""
    bias = oracle_bias(problem.preset.data.k)
    hidden = list(zip(problem.M, problem.w, strict=True))
    nets = problem.networks()
    problem.train_clean(nets)
    clean = frozen(nets)
    problem.train_adversarial(nets)
    few = {"features": 16, "steps": 10} if case.tiny else {}
    kernels = tangent(problem, RECIPES["NTK, adversarial"], **few)
    return {
        POLYNOMIAL: [PolynomialOracle(M, w) for M, w in hidden],
        KERNEL: [kernels.replicate(r) for r in range(len(problem.seeds))],
        CLEAN_NET: each_net(clean),
        PURE_NET: each_net(frozen(nets)),
        ORACLE: [measures.Nets.at((M * w).mT, bias) for M, w in hidden],
        THRESHOLDED: [ThresholdedOracle(M, w, bias) for M, w in hidden],
    }


def _curve(
    problem: SparseProblem, r: int, model: measures.Nets | nn.Module, steps: int
) -> list[float]:
    """The share of the test points that no attack breaks, at each radius."""
    x, y, way = problem.test_x[r], problem.test_y[r], problem.direction[r]
    with torch.no_grad():
        left = measures.margin_of(model, y)(x) < 0
    kept = [int(left.sum())]
    for share in SHARES[1:]:
        x, y = x[left], y[left]
        if len(y) == 0:
            break
        ball = Ball(norm=problem.preset.norm, radius=share * problem.preset.tau)
        rng = generator(NAME, "attack", share, problem.seeds[r])
        left = measures.survival(model, x, y, ball, way, rng, steps).worst
        kept.append(int(left.sum()))
    kept += [0] * (len(SHARES) - len(kept))
    return [count / problem.test_y.shape[1] for count in kept]


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


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return assumptions_of(presets_of(table, PRESETS))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    return [one for preset in PRESET_ORDER for one in _decided(table.filter(preset=preset), preset)]


def _decided(table: pl.DataFrame, preset: str) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    wide = table.pivot(on="classifier", index=["seed", "share"], values="accuracy")
    at_tau = wide.filter(share=1.0)

    def of(rows: pl.DataFrame, value: pl.Expr) -> pl.Series:
        return sample(rows.select("seed", value=value), "value")  # type: ignore[return-value]

    ahead = pl.col(PURE_NET) - pl.col(CLEAN_NET)
    radii = {
        f"radius {share:g} tau": of(wide.filter(share=share), ahead)
        for share in SHARES
        if share >= 0.5
    }
    gap = pl.col(ORACLE) - pl.col(PURE_NET)
    near = {
        "ReLU oracle less adversarial network, below 0.12": of(at_tau, 0.12 - gap),
        "the reverse, below 0.12": of(at_tau, 0.12 + gap),
        "adversarial less clean network, above 0.3": of(at_tau, ahead - 0.3),
    }
    simple = pl.max_horizontal(LINEAR, POLYNOMIAL, KERNEL)
    return [
        claims.above(
            f"5/{preset}", radii, 0, what="worst accuracy, adversarial less clean network"
        ),
        claims.above(f"6/{preset}", near, 0, what="what is left to the bound at tau"),
        with_theory_note(
            claims.below(
                f"16/{preset}",
                of(at_tau, pl.col(LINEAR)),
                0.1,
                what="exact robust accuracy of the linear rule",
            ),
            preset,  # type: ignore[arg-type]
        ),
        claims.above(
            f"simple_rules/{preset}",
            of(at_tau, pl.col(PURE_NET) - simple),
            0,
            what="worst accuracy, adversarial network less the best of linear rule, "
            "polynomial and tangent kernel,",
        ),
    ]
