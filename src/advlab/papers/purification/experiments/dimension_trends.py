"""The asymptotic claims over d: memory, mixtures, errors, and the radii at which inputs break.

Theorems 5.1 to 5.3 say o(1) as d grows, and their literal thresholds fail at any size that can be
run. What can be seen is the direction. The preset `random` is run at several d with k = d^0.4
(times a constant), tau = 1/sqrt(k), T_c = d, T_g = k^2, a pool of size ~ d and a start of length ~
1 (sigma_0 ~ 1/sqrt(d)); each seed gives a least-squares exponent in d (or, where a quantity may be
0, a slope against log d), and the interval is over seeds. These are reported and decide nothing: no
size is inside the theorems' conditions. Which way they go between the smallest and the largest d of
the run is decided as questions of ours.

Adversarial training is Algorithm 2 against FGM, which Theorem 5.3b is about (the step is always
taken), at the full radius from its first step: a warm-up of a fixed number of steps would be a
smaller share of the training at each larger d, and so a trend of its own.

- G1 and G2 are the two ratios of Theorem 5.1a (correlation with the start, correlation of pairs),
  G7 that of Theorem 5.3c (how far adversarial training moves the weights), theta the cosine of the
  introduction's principle. Beside G7 and theta stands the control, as many more clean steps.
- The headline: clean errors (5.1b, 5.3), the universal attack at tau (5.1c), and the radius at
  which half of the inputs break in the worst case. Theorem E.1 breaks the clean network at
  sqrt(d)/k^2, Corollary F.3 keeps the adversarial one up to 1/sqrt(k).
- Theorem 5.2: the average of beta; |N_i| = O(1) and (1) |beta_ij| < k/d^(1-c) outside N_i; (2) at
  least Omega(d) neurons with |N_i| = 1 and alpha > d^-c. N_i are the atoms of S_j,pot at the start
  (Remark C.3), and beside them the top atom of the trained neuron. How many those at the start are
  is a draw, before any training, and is held against its exact law. Neurons "won" have alpha above
  one half; d^-c, with c at most 0.001, is 0.995 here.
"""

from copy import deepcopy
from typing import Any

import polars as pl
from pydantic import PositiveInt

from .... import lab
from ....report import Assumption, Claim, Claims, Verdict, identity, ours, sample, theorem
from ....report.charts import AnyChart, curves, panels
from ....report.samples import slopes
from ..measures import TicketRules, expected_potential
from ._parts.conditions import THEOREMS, assumptions_of
from ._parts.presets import PAPER_FGM, Preset, SparseProblem, scaled
from ._parts.trend_measures import memory, mixtures, robustness
from ._parts.two_phase_runs import columns, frozen

POWERS = {
    "12": "G1",
    "11": "G2",
    "13": "G7",
    "10": "theta(w0, w)",
    "9": "1 - theta(w, w')",
    "7": "beta d/k",
    "5.1c/radius": "half radius k^2/sqrt(d), clean",
    "5.3b/radius": "half radius sqrt(k), adversarial",
    "5.2/1": "largest beta d/k",
}
"""The quantity whose exponent each claim is about."""
LINEAR = {
    "5.1b": "clean error, clean",
    "5.3/clean": "clean error, adversarial",
    "5.1c": "universal, clean",
    "5.2/N": "most own atoms",
    "5.2/2": "winners/d",
}
"""The quantity whose slope against log d each claim is about: some are 0."""
FALLING = ("12", "11", "13", "10", "9")
LINEAR_FALLING = {
    "5.1b": "the clean network's clean error",
    "5.3/clean": "the clean error after training against FGM",
    "5.1c": "the clean network's accuracy under the universal direction at tau",
}
LEVEL = (0.07, 0.14)
"""Within what times k/d the average dense part is asked to stay."""
SLACK = 0.05
"""How far an exponent may be from the theory's: half of what lies between 1/sqrt(k) and
sqrt(d)/k^2, which is d^0.1 at k = d^0.4."""
LAW = 0.15
"""How far the number of own atoms may be from its binomial law: three deviations of a seed's. One
tail in place of two is off by half; the threshold itself is told apart in `lottery_tickets`."""
WINNERS = {"": 0.05, ", top": 0.5}
"""How many times d neurons are asked to have won, by what N_i is."""


def _claims() -> dict[str, Claim]:
    limits = {
        label: theorem(words, THEOREMS)
        for label, words in {
            "12": "G1, the correlation with the start, vanishes as d grows",
            "11": "G2, the correlation of pairs, vanishes as d grows",
            "13": "G7, how far training against FGM moves, vanishes as d grows",
            "10": "theta(w0, w) vanishes as d grows",
            "9": "1 - theta(w, w'), w' after training against FGM, vanishes as d grows",
            "7": "The average dense part is of the order of k/d",
            "5.1b": "The clean error of the clean network vanishes",
            "5.3/clean": "The clean error after training against FGM vanishes",
            "5.1c": "The universal direction at tau leaves the clean network nothing",
            "5.1c/radius": "Half of the inputs of the clean network break within O(sqrt(d)/k^2)",
            "5.3b/radius": "Half of them hold up to Omega(1/sqrt(k)) after training against FGM",
            "5.2/N": "No neuron has more than O(1) own atoms, those of S_pot at the start",
            "5.2/1": "The largest dense part |beta_ij| is below k/d^(1-c)",
            "5.2/2": "Omega(d) neurons have won their one own atom",
        }.items()
    }
    falls = {
        f"{label}/falls": ours(f"Over the d of the run {POWERS[label]} falls: exponent below 0")
        for label in FALLING
    }
    falls |= {
        f"{label}/falls": ours(f"Over the d of the run {words} falls: its slope against log d is "
                               "below 0")
        for label, words in LINEAR_FALLING.items()
    }  # fmt: skip
    return limits | falls | {
        "7/level": ours(f"At each d of the run the average dense part is between {LEVEL[0]} and "
                        f"{LEVEL[1]} times k/d"),
        "6": ours("Over the d of the run the gap to the oracle of the robust accuracy after "
                  "training against FGM falls: its slope against log d is below 0"),
        "5.1c/radius/order": ours("Over the d of the run the radius at which half of the inputs of "
                                  "the clean network break, over sqrt(d)/k^2, has an exponent "
                                  f"below {SLACK}"),
        "5.3b/radius/order": ours("Times sqrt(k) that radius has an exponent above "
                                  f"-{SLACK} after training against FGM, and below it for the "
                                  "clean network"),
        "5/gap": ours("The radius after training against FGM over the clean network's rises: "
                      "exponent above 0"),
        "5.2/N/law": identity("At the start neurons have as many own atoms as the exact law says, "
                              f"within {100 * LAW:g} %, over all d of the run"),
        "5.2/1/order": ours("Over the d of the run the largest |beta_ij| falls as k/d: times d/k "
                            f"it has an exponent below {SLACK}"),
        "5.2/1/top": ours("as it does where each neuron's own atom is the top atom of its end"),
        "5.2/2/many": ours(f"At each d of the run more than {WINNERS['']} d neurons have one own "
                           "atom and alpha above 0.5"),
        "5.2/2/top": ours(f"and more than {WINNERS[', top']} d where the own atom is the top atom "
                          "of the end"),
    }  # fmt: skip


ABOUT = lab.About(
    paper="purification",
    item="Theorems 5.1, 5.2 and 5.3, E.1, Corollary F.3, over d",
    title="Trends of the asymptotic claims as the dimension grows",
    seconds={"smoke": 6, "laptop": 750, "paper": 800},
    looks=3,
    claims=_claims(),
)
NAME = "purification/trends, against FGM"


class Case(lab.Case):
    """The scaled preset at one dimension, for a block of seeds."""

    d: PositiveInt
    tests: PositiveInt = 4000
    clean_steps: PositiveInt | None = None
    """For trials; the scaled preset's own otherwise."""

    @property
    def cost(self) -> float:
        return self.replicates * (self.d / 256) ** 2.4

    @property
    def preset(self) -> Preset:
        """The preset `random` at this dimension, FGM's radius full from its first step; shortened
        where `clean_steps` says so."""
        full = scaled(self.d).model_copy(update={"warmup": 0})
        if self.clean_steps is None:
            return full
        few = {
            name: getattr(full, name).model_copy(update={"steps": self.clean_steps})
            for name in ("clean", "adversarial")
        }
        smaller = full.data.model_copy(update={"n": 600})
        return full.model_copy(update=few | {"data": smaller})


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    dims, usual, settings = {
        "smoke": ((16, 24, 32, 48), 2, {"clean_steps": 5, "tests": 20}),
        "laptop": ((1024, 512, 362, 256, 181, 128), 5, {}),
        "paper": ((1024, 724, 512, 362, 256, 181, 128), 5, {}),
    }[scale]
    size = 5 if scale == "smoke" else 1
    return [
        Case(d=d, **settings, **block) for d in dims for block in lab.blocks(seeds or usual, size)
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per seed: what is measured at this dimension."""
    problem = SparseProblem.draw(case.preset, case.seeds, f"{NAME}/{case.d}", tests=case.tests)
    nets = problem.networks()
    start = nets.get_parameter("weight").detach().clone()
    problem.train_clean(nets)
    clean, more = frozen(nets), deepcopy(nets)
    problem.train_adversarial(nets, attack=PAPER_FGM)
    problem.train_control(more)
    robust = frozen(nets)
    found = memory(start, clean, robust, frozen(more))
    found |= mixtures(problem, start, clean) | robustness(problem, clean, robust)
    row = {"seed": list(case.seeds), "k": case.preset.data.k, "tau": case.preset.tau}
    return pl.DataFrame(row | columns(found))


def derived(table: pl.DataFrame) -> pl.DataFrame:
    """With radii and dense parts in the units of the theorems."""
    k, d = pl.col("k"), pl.col("d")
    units = {"sqrt(k)": k.sqrt(), "k^2/sqrt(d)": k**2 / d.sqrt()}
    radii = [
        (pl.col(f"half radius, {net}") * unit).alias(f"half radius {name}, {net}")
        for net in ("clean", "adversarial", "oracle")
        for name, unit in units.items()
    ]
    largest = [(pl.col(f"largest beta{end}") * d / k).alias(f"largest beta d/k{end}")
               for end in WINNERS]  # fmt: skip
    ratio = pl.col("half radius, adversarial") / pl.col("half radius, clean")
    return table.with_columns(*radii, *largest, ratio.alias("radii"))


NETWORKS = {"clean": "clean", "adversarial": "against FGM", "oracle": "ReLU oracle"}
OWN = {"": "S_pot(0)", ", top": "the top atom"}


def figure(table: pl.DataFrame) -> AnyChart:
    table = derived(table)
    powers = [name for label, name in POWERS.items() if "/" not in label]
    charts: list[AnyChart] = [_power_chart(table, name) for name in powers]

    def several(names: dict[str, str], color: str, title: str, y_title: str, log: bool = False):
        long = table.unpivot(list(names), index=["d", "seed"], variable_name=color)
        long = long.with_columns(pl.col(color).replace_strict(names))
        return curves(long, "d", "value", color, title=title, x_title="dimension d",
                      y_title=y_title, log_x=True, log_y=log)  # fmt: skip

    def nets(start: str, end: str, title: str, y_title: str, log: bool = False) -> AnyChart:
        names = {f"{start}{net}{end}": words for net, words in NETWORKS.items()
                 if f"{start}{net}{end}" in table.columns}  # fmt: skip
        return several(names, "network", title, y_title, log)

    def own(name: str, title: str, y_title: str, log: bool = False) -> AnyChart:
        names = {f"{name}{end}": words for end, words in OWN.items()}
        return several(names, "N_i is", title, y_title, log)

    charts += [
        nets("clean error, ", "", "Clean error", "share of inputs"),
        nets("universal, ", "", "Universal direction, radius tau", "accuracy"),
        several({"oracle": NETWORKS["oracle"], "robust": NETWORKS["adversarial"]}, "network",
                "Robust accuracy at tau", "accuracy (upper bound)"),
        nets("half radius sqrt(k), ", "", "Radius at which half break, times sqrt(k)",
             "radius sqrt(k)", log=True),
        nets("half radius k^2/sqrt(d), ", "", "The same radius over sqrt(d)/k^2",
             "radius k^2/sqrt(d)", log=True),
        own("largest beta d/k", "Theorem 5.2 (1): the largest |beta|", "|beta| d/k", log=True),
        own("winners/d", "Theorem 5.2 (2): neurons that won", "neurons with alpha > 0.5, over d"),
    ]  # fmt: skip
    return panels(charts, columns=3).resolve_scale(color="independent", y="independent")


def _power_chart(table: pl.DataFrame, name: str) -> AnyChart:
    """A quantity over d; with that of the control where there is one."""
    title = f"{name}: d^{_mean(slopes(table, 'd', name)):.2f}"
    words: dict[str, Any] = {"title": title, "x_title": "dimension d", "y_title": name}
    control = f"{name}, control"
    if control not in table.columns:
        return curves(table, "d", name, log_x=True, log_y=True, **words)
    long = table.unpivot([name, control], index=["d", "seed"], variable_name="training")
    kinds = {name: "against FGM", control: "more clean steps"}
    long = long.with_columns(pl.col("training").replace_strict(kinds))
    return curves(long, "d", "value", "training", log_x=True, log_y=True, **words)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    sizes = table["d"].unique().sort().to_list()
    return assumptions_of({f"d = {d}": scaled(d) for d in sizes})


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, table = Claims(ABOUT.claims), derived(table)

    def power(name: str) -> pl.Series:
        return pl.Series(slopes(table, "d", name))

    found = [
        claims.trend(label, power(name), what=f"exponent of {name} in d")
        for label, name in POWERS.items()
    ]
    found += [
        claims.trend(label, linear(table, name), what=f"slope of {name} against log d")
        for label, name in LINEAR.items()
    ]
    found += [
        claims.below(f"{label}/falls", power(POWERS[label]), 0,
                     what=f"exponent of {POWERS[label]} in d")
        for label in FALLING
    ]  # fmt: skip
    found += [
        claims.below(f"{label}/falls", linear(table, LINEAR[label]), 0,
                     what=f"slope of {LINEAR[label]} against log d")
        for label in LINEAR_FALLING
    ]  # fmt: skip
    found += [
        claims.within("7/level", sample(table, "beta d/k", by="d"), *LEVEL,
                      what="average dense part over k/d"),
        claims.below("6", linear(table, "oracle gap"), 0,
                     what="slope of the oracle gap against log d"),
    ]  # fmt: skip
    return [*found, *_radii(claims, power), *_theorem_52(claims, table, power)]


def _radii(claims: Claims, power: Any) -> list[Verdict]:
    """How the radius at which half of the inputs break goes with d."""
    slow, fast = "half radius sqrt(k)", "half radius k^2/sqrt(d)"
    return [
        claims.below("5.1c/radius/order", power(f"{fast}, clean"), SLACK,
                     what="exponent of the radius k^2/sqrt(d) in d"),
        claims.above("5.3b/radius/order", {
            f"against FGM, above -{SLACK}": power(f"{slow}, adversarial") + SLACK,
            f"clean, below -{SLACK}": -SLACK - power(f"{slow}, clean"),
        }, 0, what="exponent of the radius sqrt(k) in d, what is left to the bound"),
        claims.above("5/gap", power("radii"), 0, what="exponent of the ratio of radii in d"),
    ]  # fmt: skip


def _theorem_52(claims: Claims, table: pl.DataFrame, power: Any) -> list[Verdict]:
    """Statements (1) and (2) of Theorem 5.2, and how many own atoms neurons have."""
    return [
        claims.equal("5.2/N/law", own_atoms(table), 1, LAW,
                     what="atoms of neurons in S_pot(0), over their exact mean"),
        *[claims.below(label, power(f"largest beta d/k{end}"), SLACK,
                       what="exponent of the largest |beta| d/k in d")
          for label, end in (("5.2/1/order", ""), ("5.2/1/top", ", top"))],
        *[claims.above(label, sample(table, f"winners/d{end}", by="d"), WINNERS[end],
                       what="neurons with one own atom and alpha above 0.5, over d")
          for label, end in (("5.2/2/many", ""), ("5.2/2/top", ", top"))],
    ]  # fmt: skip


def own_atoms(table: pl.DataFrame) -> pl.Series:
    """Of each seed the number of pairs in S_pot at the start, over its mean under the exact law,
    all d together: at each d few neurons have any."""
    laws = []
    for d in table["d"].unique().sort().to_list():
        width = scaled(d).width
        law = expected_potential(TicketRules.of(d, width), width)
        laws.append({"d": d, "width": width, "pairs": law.mean * d})
    rows = (
        table.join(pl.DataFrame(laws), on="d")
        .group_by("seed")
        .agg((pl.col("own atoms") * pl.col("width")).sum().alias("found"), pl.col("pairs").sum())
    )
    return rows.sort("seed").select(ratio=pl.col("found") / pl.col("pairs"))["ratio"]


def linear(table: pl.DataFrame, name: str) -> list[float]:
    """One slope against log d per seed, of a quantity that may be 0 or below."""
    risen = table.with_columns(pl.col(name).exp())
    return slopes(risen, "d", name)
