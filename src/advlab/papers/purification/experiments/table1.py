"""Table 1: robust and clean accuracy against several attackers, from random and from clean weights.

The paper, ResNet-34, robust (clean) accuracy in percent against linf(4/255), linf(8/255), l2(0.5,
0.12), l2(1, 0.25): clean training 0.0 (93.9) each; adversarial training from random weights 61.4
(82.3), 45.7 (71.6), 59.8 (78.3), 42.3 (64.3); from clean-trained weights 61.9 (83.9), 46.0 (73.7),
60.0 (79.2), 42.2 (65.5). It takes from it that starting from clean weights does no harm (Remark
8.1). Both adversarial trainings have the same epochs and rates here; the one from clean weights has
had the clean epochs besides.

At laptop scale the attackers are linf(4/255) and linf(8/255). At paper scale all four: a GPU is
expected, about twelve hours per seed on one.
"""

import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical
from ....report.charts import AnyChart, panels, points
from ....report.samples import groups
from ._parts import image_scales as scales
from ._parts.attackers import BALLS, AttackerName
from ._parts.image_runs import CLEAN, ImageSettings, Trainings

ABOUT = lab.About(
    paper="purification",
    item="Table 1",
    title="Robust and clean accuracy, from random and from clean weights",
    seconds={"smoke": 12, "laptop": 560, "paper": 140_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("ResNet-34", "two of four attackers"),
    claims={
        "fooled": empirical("Clean training has a robust accuracy below 0.05 against each attacker "
                            "(0.0 % in the paper)"),
        "robust": empirical("Adversarial training raises it by more than 0.1, from random weights "
                            "and from clean ones, against each attacker"),
        "no worse": empirical("From clean weights robust accuracy is no worse than from random "
                              "ones, up to 0.02, against each attacker"),
        "clean": empirical("nor is clean accuracy, up to 0.02"),
    },
)  # fmt: skip
TRAININGS = ("clean training", "adversarial, from random", "adversarial, from clean")


class Case(ImageSettings):
    """Against whom.

    Args:
        against: the attackers.
    """

    against: tuple[AttackerName, ...] = ("linf(4/255)", "linf(8/255)")


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return scales.cases(Case, scale, seeds, "ResNet-34", paper={"against": tuple(BALLS)})


def compute(case: Case) -> pl.DataFrame:
    """One row per attacker and training: clean and robust accuracy."""
    trainings = Trainings(case)
    return pl.DataFrame([
        {"against": name, "training": words,
         **trainings.accuracies(*history, attacker=name)}
        for name in case.against
        for words, history in zip(TRAININGS, ((CLEAN,), (name,), (CLEAN, name)), strict=True)
    ])  # fmt: skip


def figure(table: pl.DataFrame) -> AnyChart:
    looks = {"robust": "robust accuracy (PGD: upper bound)", "clean": "clean accuracy"}
    return panels(
        [
            points(table, "against", column, "training", x_title="attacker", y_title=words)
            for column, words in looks.items()
        ],
        columns=2,
    )


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    wide = table.pivot("training", index=["seed", "against"], values=["robust", "clean"])
    clean, random, pretrained = (pl.col(f"robust_{name}") for name in TRAININGS)
    wide = wide.with_columns(
        random_gain=random - clean,
        pretrained_gain=pretrained - clean,
        robust_change=pretrained - random,
        clean_change=pl.col(f"clean_{TRAININGS[2]}") - pl.col(f"clean_{TRAININGS[1]}"),
    )
    gains = {
        f"{words}, {name}": one
        for words, column in (("from random", "random_gain"), ("from clean", "pretrained_gain"))
        for name, one in groups(wide, column, "against").items()
    }
    fooled = groups(wide, f"robust_{TRAININGS[0]}", "against")
    robust, accurate = (
        groups(wide, column, "against") for column in ("robust_change", "clean_change")
    )
    what = "accuracy from clean weights less that from random ones"
    return [
        claims.below("fooled", fooled, 0.05, what="robust accuracy of the clean network"),
        claims.above("robust", gains, 0.1, what="robust accuracy gained"),
        claims.above("no worse", robust, -0.02, what=f"robust {what}"),
        claims.above("clean", accurate, -0.02, what=f"clean {what}"),
    ]
