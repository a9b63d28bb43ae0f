"""What each lemma of appendices C, E and F says, in words, and which number decides it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

from .....report import Claim, Claims, Verdict, ours, theorem
from .....report.samples import slopes
from .conditions import THEOREMS
from .growth_along_training import LEMMAS, MAXIMUM, NOISE, OTHER, SIGNAL
from .lemma_hypotheses import ALONG, CLEAN, FGM, LARGE, NEEDS

START, CONTROL = "start", "more clean steps"
STAGES = (START, CLEAN, FGM, CONTROL)
ALONG_FGM = "along training against FGM"
"""The stage of rows about Theorem F.1."""
Sense = Literal["O", "Omega", "Theta"]
SLACK = 0.1
"""How far the exponent in d of the constant of an order may be from 0: ours."""


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


GAP = "E|g_t(v; x + delta, x) - f_t(x + delta)|"
GAP_AT_0 = "E|g_t(0; x + delta, x) - f_Tf(x)|"
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
                  "b^2))) of its first order", GAP, stage=FGM),
    "F.12": Order("coupling at 0", "Own atoms alone, with the gates at x, are within O(m r^2/(d "
                  "sigma_rho) + k r log d/sqrt d + tau sqrt(k + r^2 m/(d b^2))) of the clean "
                  "network", GAP_AT_0, stage=FGM),
    "F.15": Order("longest rest", "No |v_i| is more than O(k/sqrt d + T eta sqrt(k)/d)",
                  "largest |v_i|", stage=FGM),
    "F.17": Order("penalty", "Own atoms alone change the regulariser by O(k sqrt d)",
                  "|sum Reg(g_i) - Reg(w_i)|"),
}  # fmt: skip
LINF = {
    "F.13": Order("coupling", "On the linf ball f is within O(tau^2/sigma_rho (k + (1 + r')^2 r^2 "
                  "m/(d b^2) + r'^2 k)) of its first order, r' the largest |v_i|_1", GAP,
                  stage=FGM),
    "F.14": Order("coupling at 0", "Own atoms alone, with the gates at x, are within O(m r^2/(d "
                  "sigma_rho) + k r log d/sqrt d + tau (k + r^2 m/(d b^2))) of the clean network",
                  GAP_AT_0, stage=FGM),
    "F.16": Order("longest rest", "No |v_i|_1 is more than O(k) (M is the identity)",
                  "largest |v_i|_1", stage=FGM),
    "F.9": Order("rest", "The rest v_i of the neurons has a mean square of O(k^2/d), equation "
                 "(F.15)", "mean of |v_i|^2", stage=FGM),
}  # fmt: skip
"""The twins in linf."""
CAPPED = "C.21/w"
"""Has no question about its constant: the norm cap sets it."""
GROWTH = {
    SIGNAL: ("Sure pairs grow by", "Theta(1/d)",
             "Theta(1/d) +- O(L_j/d + sqrt(k) sigma_rho log d/d + k/d^1.5)"),
    MAXIMUM: ("No pair grows by more than", "O(1/d)", "O((1 + L_j)/d)"),
    OTHER: ("Pairs outside S_pot grow by", "O(Gamma log d/d)", "Gamma O((log d + L_j)/d)"),
    NOISE: ("Input noise adds", "O(Gamma sx^2 |<w_i, M_j>|/(d sigma_rho))",
            "as much, and O(Gamma sx^2 L_j/d)"),
}  # fmt: skip
"""What grows, and its orders in phases I and II."""
SAID = {
    "C.7/I": "At the end of phase I every neuron has |<w_i, x>| >= b/10 with probability O(k/d)",
    "C.17b": "Phase II: the noise adds O(k^3 sx^2/d^2) to each neuron, summed over atoms",
    "E.2/each": "With input noise every neuron has <w_i, M w*> >= -O(k^3 sx^2/(lambda d^2))",
}
"""Growth lemmas whose words are not those of `GROWTH`."""
SENSE: dict[str, Sense] = {lemma: "Theta" if lemma == "C.8" else "O" for lemma in LEMMAS}
ALLOWED = {
    "O": f"of at most {LARGE:g} at each d, with an exponent in d below {SLACK:g}",
    "Omega": f"of at least {1 / LARGE:g} at each d, with an exponent in d above -{SLACK:g}",
    "Theta": f"between {1 / LARGE:g} and {LARGE:g} at each d, with an exponent in d within "
    f"{SLACK:g} of 0",
}
WITH = f"and with constant {LARGE:g}"
BELOW_CONTROL = f"{WITH} the bound is below what as many more clean steps give"
REACH = f"{WITH} the bound is below what the norm cap lets neurons reach"
SPEAKS = {
    "C.14": f"{WITH} the band does not hold 0",
    "E.2/each": f"{WITH} the bound is below the largest |w_i| |M w*|, which no neuron exceeds",
    **dict.fromkeys(("F.11", "F.12", "F.13", "F.14"), BELOW_CONTROL),
    **dict.fromkeys(("F.15", "F.16"), REACH),
}
"""What is asked of a bound that may say nothing: that something could break it."""


def order_claims() -> dict[str, Claim]:
    """Of each lemma the theorem, and the question of ours about its constant."""
    said: dict[str, tuple[str, Sense]]
    said = {label: (order.words, order.sense) for label, order in ORDERS.items()}
    for label, (grows, phase) in LEMMAS.items():
        words = SAID.get(label)
        if words is None:
            what, *order = GROWTH[grows]
            words = f"Phase {'I' * phase}: {what} {order[phase - 1]} per step"
        said[label] = words, SENSE[label]
    return claims_of(said)


def claims_of(said: Mapping[str, tuple[str, Sense]]) -> dict[str, Claim]:
    """Of each lemma, by its words and its sense, the theorem, and the question about its constant:
    outside where the lemma's own hypotheses fail.
    """
    found = {label: theorem(words, THEOREMS) for label, (words, _) in said.items()}
    return found | {
        f"{label}/level": ours(
            ", ".join(filter(None, (f"The constant that {label} needs is {ALLOWED[sense]}",
                                    SPEAKS.get(label)))), *NEEDS.get(label, ()))
        for label, (_, sense) in said.items()
        if label != CAPPED
    }  # fmt: skip


def order_verdicts(claims: Claims, label: str, rows: pl.DataFrame) -> list[Verdict]:
    """The exponent of a lemma's constant in d, which decides nothing, and whether it is level.

    Args:
        claims: those of `order_claims`.
        label: of the lemma.
        rows: one per seed and d, with the lemma's columns.
    """
    order = (ORDERS | LINF).get(label)
    name, sense = (order.name, order.sense) if order else ("constant", SENSE[label])
    powers = exponents(rows, name)
    told = claims.trend(label, powers, what=f"exponent in d of left over right, {label}")
    if label == CAPPED:
        return [implied(told, rows, name)]
    speaks = "speaks" if name == "constant" else f"{name} speaks"
    parts = {}
    for d, some in sorted(rows.partition_by("d", as_dict=True).items()):
        some = some.sort("seed")
        values = some[name]
        if sense != "Omega":
            parts[f"d = {d[0]}: {LARGE:g} less the constant"] = LARGE - values
        if sense != "O":
            parts[f"d = {d[0]}: the constant less {1 / LARGE:g}"] = values - 1 / LARGE
        if label in SPEAKS:
            name_of_it = f"d = {d[0]}: the constant from which on nothing breaks it, less {LARGE:g}"
            parts[name_of_it] = some[speaks] - LARGE
    if sense != "Omega":
        parts[f"exponent, below {SLACK:g}"] = SLACK - powers
    if sense != "O":
        parts[f"exponent, above -{SLACK:g}"] = powers + SLACK
    level = claims.above(f"{label}/level", parts, 0, what="what is left to the bound")
    return [implied(told, rows, name), level]


def against_control(table: pl.DataFrame) -> pl.DataFrame:
    """Rows after training against FGM, with what could break the bounds on the couplings: what as
    many more clean steps give, over the bound."""
    names = [f"{name} left" for name in ("coupling", "coupling at 0")]
    control = table.filter(stage=CONTROL).select("d", "seed", *names)
    rows = table.filter(stage=FGM).join(control, on=["d", "seed"], how="left", suffix=", control")
    return rows.with_columns(
        (pl.col(f"{name} left, control") / pl.col(f"{name} right")).alias(f"{name} speaks")
        for name in ("coupling", "coupling at 0")
    )


def exponents(rows: pl.DataFrame, name: str) -> pl.Series:
    """Of each seed the exponent of a column in d; none where a seed has fewer than two d, or where
    a value is not positive and has no logarithm."""
    whole = rows.group_by("seed").agg(pl.col("d").n_unique())["d"]
    known = len(whole) > 0 and bool((whole > 1).all() and (rows[name] > 0).all())
    return pl.Series(slopes(rows, "d", name) if known else [], dtype=pl.Float64)


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
    signal = pl.col("lemma").is_in([one for one in LEMMAS if SENSE[one] == "Theta"])
    order = pl.when(signal).then(pl.col("constant")).otherwise(-pl.col("constant"))
    worst = (
        rows.with_columns(order=order).sort("order").unique(["d", "seed", "lemma"], keep="first")
    )
    ranks = pl.DataFrame({"lemma": list(LEMMAS)}).with_row_index("rank")
    return worst.join(ranks, on="lemma").sort("d", "seed", "rank").drop("order", "rank")
