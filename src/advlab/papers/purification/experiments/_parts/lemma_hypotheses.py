"""What the lemmas of appendices C, E and F assume, measured in the runs that judge them.

A lemma whose hypotheses fail says nothing: the question about its constant is outside then. Orders
have their open constants and Xi2 equal to 1 and o(1) stands for at most 1, so a hypothesis that
fails by far does fail.
"""

from collections.abc import Mapping
from math import log, sqrt

import polars as pl

from .....report import Assumption
from .presets import Preset

CLEAN, FGM = "clean training", "then against FGM"
ALONG = "along clean training, with noise"
"""The stage of rows about growth."""
CLOCK = "T_f >= 1/(eta lambda)"
"""A condition of `theory.run_conditions`: the clock of Theorem E.1 and Lemma E.2."""
PLUS, TWICE = "S_ept+ after clean training", "S_ept++ after clean training"
WITHIN = "S_pot+ within S_pot(0) after clean training"
FIRST, END = "S_ept in phase I", "S_ept+ at the end of phase I"
PLUS_TWO, TWICE_TWO = "S_ept+ in phase II", "S_ept++ in phase II"
WITHIN_TWO = "S_pot+ within S_pot(0) in phase II"
STEEP = "L_max"
LARGE = 10.0
"""What O(1) means where a hypothesis says so, and how large the constant of an order may be."""
NEEDS: dict[str, tuple[str, ...]] = {
    "C.7": (PLUS,), "C.19": (PLUS, WITHIN), "C.20": (PLUS, WITHIN),
    "C.21/L": (PLUS, TWICE, WITHIN), "C.21/f": (PLUS, TWICE, WITHIN), "C.22": (STEEP,),
    "E.2": (CLOCK,), "E.2/each": (CLOCK,),
    "C.7/I": (END,), "C.8": (FIRST,), "C.9": (FIRST,), "C.10": (FIRST,),
    "C.14": (PLUS_TWO, TWICE_TWO), "C.15": (PLUS_TWO, TWICE_TWO), "C.16": (PLUS_TWO, TWICE_TWO),
    "C.17": (PLUS_TWO, TWICE_TWO), "C.17b": (PLUS_TWO, TWICE_TWO, WITHIN_TWO),
    **{label: (f"hypotheses of {label}",)
       for label in ("F.11", "F.12", "F.13", "F.14", "F.15", "F.16")},
}  # fmt: skip
"""The hypotheses of each lemma that has some of its own."""
SHARES = {
    PLUS: (CLEAN, None, "ept+"), TWICE: (CLEAN, None, "ept++"),
    WITHIN: (CLEAN, None, "pot+ within pot"),
    FIRST: (ALONG, "C.9", "ept"), END: (ALONG, "C.7/I", "ept+"),
    PLUS_TWO: (ALONG, "C.15", "ept+"), TWICE_TWO: (ALONG, "C.15", "ept++"),
    WITHIN_TWO: (ALONG, "C.15", "pot+ within pot"),
}  # fmt: skip
"""The rows (stage, lemma) and the column of shares that a hypothesis asks to be 1."""


def lemma_assumptions(table: pl.DataFrame, presets: Mapping[int, Preset]) -> list[Assumption]:
    """The hypotheses of all lemmas in l2; `ball_assumptions` has those that linf has as well.

    Args:
        table: the rows of a run.
        presets: the setting at each d.
    """
    found = []
    for name, (stage, lemma, column) in SHARES.items():
        rows = table.filter(stage=stage)
        if lemma is not None:
            rows = rows.filter(lemma=lemma)
        values = rows[column].drop_nulls().drop_nans()
        least = None if values.is_empty() else float(values.min())  # type: ignore[arg-type]
        found.append(Assumption(
            name=name, condition="every neuron or pair; the least share, of any run",
            reached=least, holds=None if least is None else least == 1,
        ))  # fmt: skip
    steep = table.filter(stage=CLEAN).group_by("d").agg(pl.col("largest L left").mean())
    ratios = {d: float(L) / LARGE for d, L in steep.drop_nulls().rows()}
    words = f"at most {LARGE:g} after clean training, mean over seeds"
    found.append(_below(STEEP, words, ratios, LARGE))
    return [*found, *ball_assumptions(table.filter(stage=FGM), presets)]


def ball_assumptions(rows: pl.DataFrame, presets: Mapping[int, Preset]) -> list[Assumption]:
    """The hypotheses of Lemmas F.11, F.12 and F.15, or of F.13, F.14 and F.16 in linf: means over
    seeds of r, r' and the r of u_i, as `robust_sides` has them.

    Args:
        rows: after training against FGM.
        presets: the setting at each d; all in one norm.
    """
    columns = "rest left", "longest rest left", "r of u"
    mean = rows.group_by("d").agg(pl.col(columns).mean()).sort("d").drop_nulls()
    means = {int(d): found for d, *found in mean.rows()}
    linf = any(one.norm == "linf" for one in presets.values())
    names = ("F.13", "F.14", "F.16") if linf else ("F.11", "F.12", "F.15")
    ratios: dict[str, dict[int, float]] = {name: {} for name in names}
    for d, (square, longest, of_u) in means.items():
        ratios[names[0]][d] = max(
            sqrt(square), presets[d].tau * (1 + longest) / presets[d].bias.end
        )
        ratios[names[1]][d] = of_u
        ratios[names[2]][d] = _movement(presets[d])
    asked = (
        "r, and tau over b/(1 + r'): the larger at most 1",
        "r, the larger of that of v and sqrt(d) max |<u_i, M_j>|: at most 1",
        "T eta over d b^2/k, and tau over b^2/(T eta k): the larger at most 1"
        if linf
        else "T eta over d b, and tau over 1/(sqrt(k) log d): the larger at most 1",
    )
    return [
        _below(f"hypotheses of {name}", words, ratios[name])
        for name, words in zip(names, asked, strict=True)
    ]


def _movement(preset: Preset) -> float:
    """What Lemma F.15, or F.16 in linf, asks of the time and the radius of training, over it."""
    d, k, b, tau = preset.data.d, preset.data.k, preset.bias.end, preset.tau
    time = preset.adversarial.steps * preset.adversarial.lr
    if preset.norm == "linf":
        return max(time * k / (d * b**2), tau * time * k / b**2)
    return max(time / (d * b), tau * sqrt(k) * log(d))


def _below(name: str, condition: str, ratios: Mapping[int, float], unit: float = 1.0) -> Assumption:
    """That a ratio is at most 1 at every d; the largest is shown, times `unit`."""
    worst = max(ratios.items(), key=lambda one: one[1], default=None)
    if worst is None:
        return Assumption(name=name, condition=condition)
    return Assumption(name=name, condition=f"{condition}, at d = {worst[0]}",
                      reached=worst[1] * unit, holds=worst[1] <= 1)  # fmt: skip
