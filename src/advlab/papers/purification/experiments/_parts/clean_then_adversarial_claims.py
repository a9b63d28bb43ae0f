"""The claims of clean and then adversarial training, the rule for each preset, the decision.

A rule is one number per seed and its bound, or several that must all be kept: a claim that would
also be true of networks that nobody trained, or trained without the attack, has a part that is not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import polars as pl

from .....report import Claim, Claims, Verdict, empirical, identity, ours, sample, theorem
from .conditions import THEOREMS
from .two_phase_runs import PresetName, with_theory_note

PRESET_ORDER: tuple[PresetName, ...] = ("random", "wide_margin")
WORDS = {"random": "random", "wide_margin": "wide margin"}
ATOMS = 256
"""D of both presets."""

col = pl.col


@dataclass(frozen=True)
class Part:
    """One number per seed, and the bound of its mean for (random, wide_margin)."""

    what: str
    value: pl.Expr
    side: Literal["above", "below"]
    bounds: tuple[float, float]

    def margin(self, preset: PresetName) -> pl.Expr:
        """How far the number is on the right side of its bound."""
        bound = self.bounds[PRESET_ORDER.index(preset)]
        return self.value - bound if self.side == "above" else bound - self.value

    def words(self, preset: PresetName) -> str:
        """The part as a sentence."""
        return f"{self.what} {self.side} {self.bounds[PRESET_ORDER.index(preset)]:g}"


@dataclass(frozen=True)
class Rule:
    """A claim, in words with {} for the first part's bound, its kind, and the parts it needs."""

    kind: Callable[..., Claim]
    claim: str
    parts: tuple[Part, ...]
    decided: Literal["mean", "trend", "exact"] = "mean"
    """By the mean over seeds; never, as an order o(1) is a trend; or by the sum over seeds."""
    at_tau: bool = False
    """About the preset's radius, so the verdict notes what theory says of it."""


def above(what: str, value: pl.Expr, *bounds: float) -> Part:
    """The mean over seeds is above the bound: one for both presets, or one for each."""
    return Part(what, value, "above", (bounds[0], bounds[-1]))


def below(what: str, value: pl.Expr, *bounds: float) -> Part:
    """The mean over seeds is below the bound."""
    return Part(what, value, "below", (bounds[0], bounds[-1]))


def fall(name: str) -> pl.Expr:
    """How many times larger a column is for the clean network than for the adversarial one."""
    return col(f"clean: {name}") / col(f"adversarial: {name}")


THETA, MOVED = col("theta(w, w')"), col("control: theta(w, w')")
TURNS = above("theta of the control less theta", MOVED - THETA, 0.02)
"""Neurons turn more than by as many clean steps: theta is not that of doing nothing."""
GAIN = above("worst accuracy, adversarial less clean network",
             col("adversarial: worst") - col("clean: worst"), 0.3)  # fmt: skip
FOUND = above("mean top energy of the clean network", col("clean: top energy"), 0.4)
"""Neurons have found atoms: at the start it is about 2 log d/d."""

RULES: dict[str, Rule] = {
    "1": Rule(empirical, "The clean network is right on more than {} of clean inputs",
              (above("clean accuracy, clean network", col("clean: clean"), 0.99),)),
    "1u": Rule(empirical, "and on more than {} of those that no margin filters",
               (above("accuracy on unfiltered draws, clean network", col("clean: unfiltered"),
                      0.99),)),
    "2a": Rule(empirical, "The universal direction -y M w* leaves the clean network less than {} "
               "at tau", (below("accuracy at tau under the universal attack, clean network",
                                col("clean: universal"), 0.25, 0.15),), at_tau=True),
    "2b": Rule(empirical, "and less than {} at 1.5 tau",
               (below("accuracy at 1.5 tau under the universal attack, clean network",
                      col("clean: universal at 1.5 tau"), 0.05),)),
    "3": Rule(empirical, "A random direction of that length costs less than {}, where the "
              "universal one costs more than half",
              (below("accuracy lost to a random direction", col("clean: clean") -
                     col("clean: random"), 0.01),
               above("accuracy lost to the universal one", col("clean: clean") -
                     col("clean: universal"), 0.5))),
    "4": Rule(empirical, "The one model-free direction explains the attack: it leaves less than {} "
              "more than the worst, which takes more than half",
              (below("accuracy, universal less worst", col("clean: universal") -
                     col("clean: worst"), 0.03),
               above("accuracy lost to the worst", col("clean: clean") - col("clean: worst"),
                     0.5))),
    "5a": Rule(empirical, "The adversarial network is right on more than {} of clean inputs",
               (above("clean accuracy, adversarial network", col("adversarial: clean"), 0.96),)),
    "5u": Rule(empirical, "and on more than {} of those that no margin filters",
               (above("accuracy on unfiltered draws, adversarial network",
                      col("adversarial: unfiltered"), 0.96),)),
    "5b": Rule(empirical, "Its worst accuracy at tau is above {}",
               (above("worst accuracy at tau, adversarial network", col("adversarial: worst"),
                      0.65, 0.70),), at_tau=True),
    "5c": Rule(empirical, "more than {} times that of the clean one",
               (above("worst accuracy, adversarial over clean network",
                      col("adversarial: worst") / col("clean: worst"), 3.0, 7.0),)),
    "5d": Rule(empirical, "Trained against FGM alone (Theorem 5.3b), it is above {}",
               (above("worst accuracy at tau, network trained against FGM",
                      col("FGM-trained: worst"), 0.65, 0.70),), at_tau=True),
    "6": Rule(ours, "It is within {} of the ReLU oracle, which is below 1 itself, and far above "
              "the clean network",
              (below("worst accuracy, ReLU oracle less adversarial network",
                     col("oracle: worst") - col("adversarial: worst"), 0.12),
               below("the reverse", col("adversarial: worst") - col("oracle: worst"), 0.12), GAIN)),
    "7a": Rule(empirical, "Adversarial training shrinks the dense part of the neurons more than {} "
               "times", (above("mean dense/top, clean over adversarial network",
                               fall("dense over top"), 2.0),)),
    "7b": Rule(empirical, "and their cosine with M w* more than {} times",
               (above("mean cos(w, M w*), clean over adversarial network", fall("cosine"), 2.5),)),
    "8": Rule(empirical, "More than {} of the change of the weights is on the one direction M w*, "
              "and the change is more than that of as many clean steps",
              (above("share of the energy of the change on M w* (1/d by chance)",
                     col("change on Mw*"), 0.2),
               above("G7 less the control's", col("G7") - col("control: G7"), 0.1))),
    "9a": Rule(empirical, "Neurons turn, more than by as many clean steps, and keep theta(w, w') "
               "above {} in the mean over those alive before or after",
               (above("mean theta(w, w')", THETA, 0.8), TURNS)),
    "9b": Rule(empirical, "more than {} of them above 0.8",
               (above("share with theta(w, w') above 0.8", col("theta(w, w') above 0.8"), 0.8),
                TURNS)),
    "9c": Rule(empirical, "and above {} in the mean over all neurons, dead ones too",
               (above("mean theta(w, w') over all neurons", col("theta(w, w'), all"), 0.8),
                above("theta of the control less theta, all neurons",
                      col("control: theta(w, w'), all") - col("theta(w, w'), all"), 0.005))),
    "10": Rule(empirical, "theta(w, w') exceeds theta(w0, w') by more than {}, though neurons turn "
               "more than by as many clean steps",
               (above("mean theta(w, w') less mean theta(w0, w')", THETA - col("theta(w0, w')"),
                      0.4), TURNS)),
    "10b": Rule(empirical, "Most neurons alive forget their start in clean training: theta(w0, w) "
                "is below 0.2 for more than {} of them",
                (above("share of neurons alive with theta(w0, w) below 0.2",
                       col("theta(w0, w) below 0.2"), 0.5), FOUND)),
    "10c": Rule(empirical, "as do most of all neurons, dead ones too: more than {}",
                (above("share of all neurons with theta(w0, w) below 0.2",
                       col("theta(w0, w) below 0.2, all"), 0.5), FOUND)),
    "10d": Rule(empirical, "and theta(w0, w') is below 0.2 for more than {} of those alive after "
                "either training",
                (above("share with theta(w0, w') below 0.2", col("theta(w0, w') below 0.2"), 0.5),
                 FOUND)),
    "11a": Rule(empirical, "Neurons that have found atoms are nearly orthogonal: theta(w_i, w_j) "
                "is below 0.2 for more than {} of the pairs alive",
                (above("share of pairs alive with theta below 0.2", col("clean: pairs below"),
                       0.85), FOUND)),
    "11b": Rule(empirical, "and G2, over all neurons, is below {}",
                (below("G2", col("clean: G2"), 0.15), FOUND)),
    "12": Rule(theorem, "G1, the correlation with the start, is o(1) after clean training",
               (below("G1", col("G1"), 0.0),), "trend"),
    "13a": Rule(theorem, "G7, the change of the weights in adversarial training, is o(1)",
                (below("G7", col("G7"), 0.0),), "trend"),
    "13b": Rule(theorem, "and of the directions of the neurons, scaled to length 1",
                (below("G7 of normalised neurons", col("G7 of directions"), 0.0),), "trend"),
    "13c": Rule(ours, "G7 exceeds that of as many clean steps by more than {}",
                (above("G7 less the control's", col("G7") - col("control: G7"), 0.1),)),
    "14a": Rule(empirical, "What breaks one clean network breaks another, trained independently: "
                "their accuracies differ by less than {} and are below one half",
                (below("|accuracy of another network less the own one's|, at the own one's PGD "
                       "points", (col("transfer: other") - col("transfer: own")).abs(), 0.05),
                 below("accuracy of another network", col("transfer: other"), 0.5))),
    "14b": Rule(empirical, "but leaves the adversarial one more than {}",
                (above("accuracy of the adversarial network at PGD points of the clean one",
                       col("transfer: adversarial"), 0.8),)),
    "15": Rule(empirical, "FGM perturbations spread over atoms {} times less, and more",
               (above("participation ratio of FGM perturbations, clean over adversarial network",
                      fall("participation"), 5.0),)),
    "20": Rule(empirical, "In more than {} of the clean steps every neuron alive is pushed along "
               "M w*", (above("share of clean steps with -<grad_i, M w*> > 0 for all neurons alive",
                              col("growth: every"), 0.95),)),
    "20b": Rule(empirical, "and in the mean over the steps more than {} of them are",
                (above("share of neurons alive with -<grad_i, M w*> > 0, mean over clean steps",
                       col("growth: share"), 0.95),)),
    "20i": Rule(identity, "No neuron is ever pushed against M w*",
                (above("least -<grad_i, M w*> of any neuron and step, over the largest",
                       col("growth: least"), -1e-4),)),
    "24": Rule(identity, "Bounds are in order at every point: certified <= worst <= PGD <= FGM and "
               "clean", (below("number of test points out of order", col("clean: disorder") +
                               col("adversarial: disorder") + col("oracle: disorder") +
                               col("FGM-trained: disorder") + col("control: disorder"), 0.5),),
               "exact"),
    "27": Rule(empirical, "Training against FGM alone does not overfit it: the worst is less than "
               "{} below the accuracy under FGM, and more than 0.3 above the clean network's",
               (below("accuracy under FGM less the worst, network trained against FGM",
                      col("FGM-trained: fgm") - col("FGM-trained: worst"), 0.2),
                above("worst accuracy, that network less the clean one",
                      col("FGM-trained: worst") - col("clean: worst"), 0.3))),
    "28a": Rule(empirical, "Training against FGM makes f nearly linear on the ball: its gap to the "
                "first order falls more than {} times",
                (above("mean linearity gap, clean network over the one trained against FGM",
                       col("clean: linearity gap") / col("FGM-trained: linearity gap"), 3.0),)),
    "28b": Rule(empirical, "so the argument of Corollary F.2 goes through at more than {} of the "
                "inputs, at the points that were tried",
                (above("share of inputs with y f(x + delta_FGM) > 2 gap, network trained against "
                       "FGM", col("FGM-trained: FGM floor"), 0.5),
                 above("that share less the clean network's", col("FGM-trained: FGM floor") -
                       col("clean: FGM floor"), 0.2))),
    "29a": Rule(empirical, "Adversarial training makes the network robust without new features: "
                "the atoms covered rise by less than {} of all",
                (below("rise of atoms covered, over all atoms", (col("adversarial: covered") -
                       col("clean: covered")) / ATOMS, 0.02), GAIN)),
    "29b": Rule(empirical, "without new neurons: less than {} of those alive after were dead",
                (below("share of the neurons alive after that were not before", col("recruited"),
                       0.05), GAIN)),
    "29c": Rule(empirical, "without removing any: less than {} of those alive before die",
                (below("share of the neurons alive before that are not after", col("lost"), 0.05),
                 GAIN)),
    "29d": Rule(empirical, "and less than {} of those alive before and after turn to another atom",
                (below("share of neurons whose top atom is another", col("turned"), 0.05), GAIN)),
    "29e": Rule(ours, "Without the neurons that came alive more than {} of the gain in worst "
                "accuracy stays",
                (above("gain over the clean network without recruits, over that with them",
                       (col("recruits: without") - col("recruits: clean")) /
                       (col("recruits: with") - col("recruits: clean")), 0.9),)),
}  # fmt: skip


def _claim(rule: Rule, preset: PresetName) -> Claim:
    bound = rule.parts[0].bounds[PRESET_ORDER.index(preset)]
    needs = (THEOREMS,) if rule.kind is theorem else ()
    return rule.kind(f"{rule.claim.format(f'{bound:g}')} ({WORDS[preset]})", *needs)


CLAIMS = {
    f"{name}/{preset}": _claim(rule, preset)
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
    first, where = rule.parts[0], PRESET_ORDER.index(preset)

    def each(value: pl.Expr) -> pl.Series:
        return sample(rows.select("seed", value=value), "value")  # type: ignore[return-value]

    if rule.decided == "trend":
        return claims.trend(label, each(first.value), what=first.what)
    if rule.decided == "exact":
        total = float(each(first.value).sum()) if len(rows) else None
        return claims.below(label, total, first.bounds[where], what=f"{first.what}, of all seeds,")
    if len(rule.parts) == 1:
        decided = claims.above if first.side == "above" else claims.below
        verdict = decided(label, each(first.value), first.bounds[where], what=first.what)
    else:
        margins = {part.words(preset): each(part.margin(preset)) for part in rule.parts}
        verdict = claims.above(label, margins, 0, what="what is left to the bound")
    return with_theory_note(verdict, preset) if rule.at_tau else verdict
