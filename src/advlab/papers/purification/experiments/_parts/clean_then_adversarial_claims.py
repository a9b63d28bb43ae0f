"""The claims of clean and then adversarial training, the rule for each preset, the decision."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from .....report import Claims, Verdict, sample, undecide
from .two_phase_runs import PresetName, with_theory_note

REPORTED = (
    "of order o(1) in the paper: reported, not decided; purification/dimension_trends has its trend"
)

col = pl.col


@dataclass(frozen=True)
class Rule:
    """One number per seed, and where its mean should lie, for (random, wide_margin)."""

    claim: str
    what: str
    value: pl.Expr
    side: Literal["above", "below", "within"]
    """Above or below the bound, or within it on both sides of 0."""
    bounds: tuple[float, float]
    asymptotic: bool = False
    at_tau: bool = False
    """About the preset's radius, so the verdict notes what theory says of it."""


RULES: dict[str, Rule] = {
    "1": Rule("The clean network classifies clean inputs", "clean accuracy, clean network",
              col("clean: clean"), "above", (0.99, 0.99)),
    "2a": Rule("The universal direction -y M w* breaks the clean network",
               "accuracy at tau under the universal attack, clean network",
               col("clean: universal"), "below", (0.25, 0.15), at_tau=True),
    "2b": Rule("and nearly all of it at 1.5 tau",
               "accuracy at 1.5 tau under the universal attack, clean network",
               col("clean: universal at 1.5 tau"), "below", (0.05, 0.05)),
    "3": Rule("A random direction of that length costs nothing",
              "accuracy lost to a random direction, clean network",
              col("clean: clean") - col("clean: random"), "below", (0.01, 0.01)),
    "4": Rule("The one model-free direction explains the whole attack",
              "accuracy under the universal attack less the worst, clean network",
              col("clean: universal") - col("clean: worst"), "below", (0.03, 0.03)),
    "5a": Rule("The adversarial network keeps its clean accuracy",
               "clean accuracy, adversarial network", col("adversarial: clean"), "above",
               (0.96, 0.96)),
    "5b": Rule("The adversarial network is robust at tau",
               "worst accuracy at tau, adversarial network", col("adversarial: worst"), "above",
               (0.65, 0.70), at_tau=True),
    "5c": Rule("many times more than the clean one",
               "worst accuracy, adversarial over clean network",
               col("adversarial: worst") / col("clean: worst"), "above", (3.0, 7.0)),
    "6": Rule("It comes near the ReLU oracle, which is below 1 itself",
              "worst accuracy, ReLU oracle less adversarial network",
              col("oracle: worst") - col("adversarial: worst"), "within", (0.12, 0.12)),
    "7a": Rule("Adversarial training shrinks the dense part of the neurons",
               "mean dense/top, clean over adversarial network",
               col("clean: dense over top") / col("adversarial: dense over top"), "above",
               (2.0, 2.0)),
    "7b": Rule("and their cosine with M w*", "mean cos(w, M w*), clean over adversarial network",
               col("clean: cosine") / col("adversarial: cosine"), "above", (2.5, 2.5)),
    "8": Rule("Weights change along the one direction M w*",
              "share of the energy of the change on M w* (1/d by chance)",
              col("change on Mw*"), "above", (0.2, 0.2)),
    "9a": Rule("Neurons keep their direction in adversarial training", "mean theta(w, w')",
               col("theta(w, w')"), "above", (0.8, 0.8)),
    "9b": Rule("nearly all of them", "share of neurons alive with theta(w, w') > 0.8",
               col("theta(w, w') above 0.8"), "above", (0.8, 0.8)),
    "10": Rule("more than they remember of their start", "theta(w, w') less theta(w0, w')",
               col("theta(w, w')") - col("theta(w0, w')"), "above", (0.4, 0.4)),
    "10b": Rule("The clean network forgets its start: theta(w0, w) <= 0.2",
                "mean theta(w0, w)", col("theta(w0, w)"), "below", (0.2, 0.2), asymptotic=True),
    "11a": Rule("Neurons are nearly orthogonal to each other",
                "share of pairs alive with theta(w_i, w_j) < 0.2, clean network",
                col("clean: pairs below"), "above", (0.85, 0.85)),
    "11b": Rule("and in the mean over all pairs", "G2, clean network", col("clean: G2"), "below",
                (0.15, 0.15)),
    "12": Rule("The init correlation G1 is o(1) after clean training", "G1", col("G1"), "below",
                (0.25, 0.25), asymptotic=True),
    "13a": Rule("Adversarial training moves the weights by o(1)", "G7", col("G7"), "below",
                (0.6, 0.6), asymptotic=True),
    "13b": Rule("and the directions of the neurons, scaled to length 1",
                "G7 of normalised neurons", col("G7 of directions"), "below", (0.6, 0.6),
                asymptotic=True),
    "14a": Rule("What breaks one clean network breaks another, trained independently",
                "|accuracy of another network less the own one's|, at the own one's PGD points",
                (col("transfer: other") - col("transfer: own")).abs(), "below", (0.05, 0.05)),
    "14b": Rule("but not the adversarial one",
                "accuracy of the adversarial network at PGD points of the clean one",
                col("transfer: adversarial"), "above", (0.8, 0.8)),
    "15": Rule("FGM perturbations become sparse in the dictionary",
               "participation ratio of FGM perturbations, clean over adversarial network",
               col("clean: participation") / col("adversarial: participation"), "above",
               (5.0, 5.0)),
    "20": Rule("Every clean step pushes every neuron alive along M w*",
               "share of clean steps with -<grad_i, M w*> > 0 for all neurons alive",
               col("growth: every"), "above", (0.95, 0.95)),
    "20b": Rule("or nearly every one",
                "share of neurons alive with -<grad_i, M w*> > 0, mean over clean steps",
                col("growth: share"), "above", (0.95, 0.95)),
    "24": Rule("Bounds are in order: certified <= worst <= PGD <= FGM <= clean, at every point",
               "number of test points out of order",
               col("clean: disorder") + col("adversarial: disorder") + col("oracle: disorder"),
               "below", (0.5, 0.5)),
    "27": Rule("FGM is no illusion: training does not overfit the attack",
               "accuracy under FGM less the worst, adversarial network",
               col("adversarial: fgm") - col("adversarial: worst"), "below", (0.2, 0.2)),
}  # fmt: skip
PRESET_ORDER: tuple[PresetName, ...] = ("random", "wide_margin")
WORDS = {"random": "random", "wide_margin": "wide margin"}
CLAIMS = {
    f"{name}/{preset}": f"{rule.claim} ({WORDS[preset]})"
    for preset in PRESET_ORDER
    for name, rule in RULES.items()
}


def decide(ends: pl.DataFrame) -> list[Verdict]:
    """All claims, from one row per preset and seed."""
    claims = Claims(CLAIMS)
    return [
        _verdict(claims, name, preset, ends.filter(preset=preset))
        for preset in PRESET_ORDER
        for name in RULES
    ]


def _verdict(claims: Claims, name: str, preset: PresetName, rows: pl.DataFrame) -> Verdict:
    rule, label = RULES[name], f"{name}/{preset}"
    bound = rule.bounds[PRESET_ORDER.index(preset)]
    values = sample(rows.select("seed", value=rule.value), "value")
    if rule.side == "within":
        verdict = claims.within(label, values, -bound, bound, what=rule.what)
    elif rule.side == "above":
        verdict = claims.above(label, values, bound, what=rule.what)
    else:
        verdict = claims.below(label, values, bound, what=rule.what)
    if rule.at_tau:
        verdict = with_theory_note(verdict, preset)
    if not rule.asymptotic:
        return verdict
    held = f"the finite rule would be {verdict.outcome}"
    return undecide(verdict, f"{REPORTED}; {held}")
