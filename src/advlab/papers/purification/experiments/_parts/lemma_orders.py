"""What each lemma of appendices C, E and F says, in words, and which number decides it."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from .....report import Claim, Claims, Verdict, ours, theorem
from .....report.samples import slopes
from .conditions import THEOREMS
from .growth_along_training import LEMMAS, MAXIMUM, NOISE, OPPOSED, OTHER, SIGNAL

START, CLEAN, FGM, CONTROL = "start", "clean training", "then against FGM", "more clean steps"
STAGES = (START, CLEAN, FGM, CONTROL)
ALONG = "along clean training, with noise"
"""The stage of rows about growth."""
ALONG_FGM = "along training against FGM"
"""The stage of rows about Theorem F.1."""
Sense = Literal["O", "Omega", "Theta"]
LARGE, SLACK = 10.0, 0.1
"""How large the constant of an order may be, and how far its exponent in d from 0: ours."""


@dataclass(frozen=True)
class Order:
    """A lemma that says left <= O(right), left >= Omega(right), or left = Theta(right).

    `name` is the column of left over right, at the end of `stage`; `left` the words of the left
    side in a figure.
    """

    name: str
    words: str
    left: str
    sense: Sense = "O"
    stage: str = CLEAN


ORDERS = {
    "C.7": Order("Gamma", "Every neuron has |<w_i, x>| >= b/10 with probability O(k/d)",
                 "largest Pr[|<w_i, x>| >= b/10]"),
    "C.19": Order("near", "At most O(k) neurons have |<w_i, x>| >= b/10",
                  "neurons with |<w_i, x>| >= b/10"),
    "C.20": Order("Lipschitz", "L_j is at most sum over S_pot+ of |<w_i, M_j>| + O(k/sqrt d)",
                  "L_j, mean over atoms"),
    "C.21/L": Order("largest L", "Every L_j is O(1)", "largest L_j"),
    "C.21/w": Order("longest", "Every |w_i| is O(1)", "largest |w_i|"),
    "C.21/f": Order("largest f", "Every |f(x)| is O(log d)", "largest |f(x)|"),
    "C.22": Order("slope", "E[l'] is Omega(min(1, 1/(L_max log d)^2))", "E[l']", "Omega"),
    "E.2": Order("common", "The sum over i in the union of S_j,sure(0) of <w_i, M w*> is "
                 "Omega(k d)", "sum of <w_i, M w*> over sure i", "Omega"),
    "F.8": Order("other atom", "Beside its own atoms, those of S_pot at the start, no neuron has a "
                 "coordinate of more than O(k/d)", "largest other |<w_i, M_j>|"),
    "F.9": Order("rest", "The rest v_i of the neurons has a mean square of O(k^2/d), equation "
                 "(F.12)", "mean of |v_i|^2", stage=FGM),
    "F.11": Order("coupling", "On the ball f is within O(tau^2/sigma_rho (1 + (1 + r')^2 r^2 m/(d "
                  "b^2))) of its first order", "E|g_t(v; x + delta, x) - f_t(x + delta)|",
                  stage=FGM),
    "F.12": Order("coupling at 0", "Own atoms alone, with the gates at x, are within O(m r^2/(d "
                  "sigma_rho) + k r log d/sqrt d + tau sqrt(k + r^2 m/(d b^2))) of the clean "
                  "network", "E|g_t(0; x + delta, x) - f_Tf(x)|", stage=FGM),
    "F.15": Order("longest rest", "No |v_i| is more than O(k/sqrt d + T eta sqrt(k)/d)",
                  "largest |v_i|", stage=FGM),
    "F.17": Order("penalty", "Own atoms alone change the regulariser by O(k sqrt d)",
                  "|sum Reg(g_i) - Reg(w_i)|"),
}  # fmt: skip
GROWTH = {
    SIGNAL: ("Sure pairs grow by", "Theta(1/d)", "Theta(1/d), up to O(L_j/d)"),
    MAXIMUM: ("No pair grows by more than", "O(1/d)", "O((1 + L_j)/d)"),
    OTHER: ("Pairs outside S_pot grow by", "O(Gamma log d/d)", "Gamma O((log d + L_j)/d)"),
    NOISE: ("Input noise adds", "O(Gamma sx^2 |<w_i, M_j>|/(d sigma_rho))",
            "as much, and O(Gamma sx^2 L_j/d)"),
}  # fmt: skip
"""What grows, and its orders in phases I and II."""
EACH = "With input noise every neuron has <w_i, M w*> >= -O(k^3 sx^2/(lambda d^2))"
SENSE: dict[str, Sense] = {lemma: "Theta" if grows == SIGNAL else "O"
                           for lemma, (grows, _) in LEMMAS.items()}  # fmt: skip
ALLOWED = {
    "O": f"of at most {LARGE:g} at each d, with an exponent in d below {SLACK:g}",
    "Omega": f"of at least {1 / LARGE:g} at each d, with an exponent in d above -{SLACK:g}",
    "Theta": f"between {1 / LARGE:g} and {LARGE:g} at each d, with an exponent in d within "
    f"{SLACK:g} of 0",
}


def order_claims() -> dict[str, Claim]:
    """Of each lemma the theorem, and the question of ours about its constant."""
    said = {label: (order.words, order.sense) for label, order in ORDERS.items()}
    for label, (grows, phase) in LEMMAS.items():
        if grows == OPPOSED:
            said[label] = EACH, SENSE[label]
            continue
        what, *order = GROWTH[grows]
        words = f"Phase {'I' * phase}: {what} {order[phase - 1]} per step"
        said[label] = words, SENSE[label]
    found = {label: theorem(words, THEOREMS) for label, (words, _) in said.items()}
    return found | {
        f"{label}/level": ours(f"The constant that {label} needs is {ALLOWED[sense]}")
        for label, (_, sense) in said.items()
    }


def order_verdicts(claims: Claims, label: str, rows: pl.DataFrame) -> list[Verdict]:
    """The exponent of a lemma's constant in d, which decides nothing, and whether it is level.

    Args:
        claims: those of `order_claims`.
        label: of the lemma.
        rows: one per seed and d, with the lemma's columns.
    """
    name = ORDERS[label].name if label in ORDERS else "constant"
    sense = ORDERS[label].sense if label in ORDERS else SENSE[label]
    powers = exponents(rows, name)
    told = claims.trend(label, powers, what=f"exponent in d of left over right, {label}")
    parts = {}
    for d, some in sorted(rows.partition_by("d", as_dict=True).items()):
        values = some.sort("seed")[name]
        if sense != "Omega":
            parts[f"d = {d[0]}: {LARGE:g} less the constant"] = LARGE - values
        if sense != "O":
            parts[f"d = {d[0]}: the constant less {1 / LARGE:g}"] = values - 1 / LARGE
    if sense != "Omega":
        parts[f"exponent, below {SLACK:g}"] = SLACK - powers
    if sense != "O":
        parts[f"exponent, above -{SLACK:g}"] = powers + SLACK
    level = claims.above(f"{label}/level", parts, 0, what="what is left to the bound")
    return [implied(told, rows, name), level]


def exponents(rows: pl.DataFrame, name: str) -> pl.Series:
    """Of each seed the exponent of a column in d; none where a seed has fewer than two d."""
    whole = rows.group_by("seed").agg(pl.col("d").n_unique())["d"]
    found = slopes(rows, "d", name) if len(whole) and (whole > 1).all() else []
    return pl.Series(found, dtype=pl.Float64)


def implied(verdict: Verdict, rows: pl.DataFrame, name: str) -> Verdict:
    """The verdict with both sides and the constant at each d, means over seeds, in its note."""
    left, right = ("left", "right") if name == "constant" else (f"{name} left", f"{name} right")
    known = rows.drop_nulls([left, right, name])
    said = [
        f"at d = {d} {mean[left]:.3g} over {mean[right]:.3g}, constant {mean[name]:.3g}"
        for (d,), some in sorted(known.partition_by("d", as_dict=True).items())
        for mean in some.select(left, right, name).mean().iter_rows(named=True)
    ]
    note = "; ".join(filter(None, (verdict.note, *said)))
    return verdict.model_copy(update={"note": note})


def at_growth(table: pl.DataFrame) -> pl.DataFrame:
    """The constant that each growth lemma needs in its phase: the largest for O, the least mean
    for Theta; one row per seed, d and lemma."""
    rows = table.filter((pl.col("stage") == ALONG) & pl.col("constant").is_finite())
    signal = pl.col("lemma").is_in([one for one in LEMMAS if LEMMAS[one][0] == SIGNAL])
    order = pl.when(signal).then(pl.col("constant")).otherwise(-pl.col("constant"))
    worst = (
        rows.with_columns(order=order).sort("order").unique(["d", "seed", "lemma"], keep="first")
    )
    ranks = pl.DataFrame({"lemma": list(LEMMAS)}).with_row_index("rank")
    return worst.join(ranks, on="lemma").sort("d", "seed", "rank").drop("order", "rank")
