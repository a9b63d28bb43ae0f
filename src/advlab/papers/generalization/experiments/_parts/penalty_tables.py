"""Tables 1 and 2: adversarial training of WideResNet34-10 with an L1 penalty, on all of CIFAR-10.

Only at paper scale is the network the paper's. At laptop scale a small one runs through the same
code for two epochs, and every claim is undecided, with that as the reason: the penalty was chosen
to be comparable with the loss of 46 million weights and says nothing about a hundredth of them.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from ..... import lab
from .....report import Claim, Claims, Verdict, empirical, sample, undecide
from .....report.charts import AnyChart, panels
from .....report.matrix import matrix
from . import wide_resnet_runs as runs
from .wide_resnet_runs import Case

WEIGHT = 1e-5
SIZE = 34
REASON = (
    "needs WideResNet34-10 (46 million weights) on all of CIFAR-10, at paper scale on a GPU: a "
    "smaller network cannot decide it"
)


METHODS = "no penalty", "L1 penalty"
KINDS = {"standard": "standard", "adversarial": "adversarial, under PGD-10"}
PAPER = "the paper: WideResNet34-10, all of CIFAR-10"


def about(item: str, attack: str, printed: tuple[float, float]) -> lab.About:
    """What both tables have in common; `printed` are the paper's gains, in points."""
    standard, adversarial = printed
    return lab.About(
        paper="generalization",
        item=item,
        title=f"L1 penalty for WideResNet34-10 on CIFAR-10, {attack}",
        seconds={"smoke": 5, "laptop": 120, "paper": 1500000},
        data=("cifar10",),
        reduced={"laptop": "depth 10 and 8 channels for WideResNet34-10, 1000 images, 2 epochs"},
        claims={
            "a": empirical(
                f"the penalty raises adversarial test accuracy (printed: {adversarial:g} points)"
            ),
            "b": empirical(f"and standard test accuracy (printed: {standard:g} points)"),
        },
    )


def recipe(scale: str, seeds: int | None, **attack: Any) -> list[Case]:
    """The cases of a table: with the penalty and without, in pairs of one start.

    Args:
        scale: "smoke", "laptop" or "paper".
        seeds: pairs; 1 at laptop scale and 3 at paper scale if left out.
        attack: norm and radius.
    """
    usual, settings = {
        "smoke": (2, runs.SMOKE),
        "laptop": (1, {"n": 1000, "epochs": 2, "every": 2, "tested": 300}),
        "paper": (3, {**runs.PAPER, "widen": 10}),
    }[scale]
    return runs.cases(seeds or usual, [{"l1": 0.0}, {"l1": WEIGHT}], **{**settings, **attack})


def figure(table: pl.DataFrame, printed: Mapping[str, tuple[float, float]]) -> AnyChart:
    """Test accuracy in per cent, as the paper's table has it, and that table.

    Args:
        table: of the runs.
        printed: standard and adversarial accuracy by the name of a method.
    """
    last = table.filter(pl.col("step") == pl.col("steps")).sort("l1")
    names = pl.when(pl.col("l1") > 0).then(pl.lit(METHODS[1])).otherwise(pl.lit(METHODS[0]))
    size = f"depth {table['depth'][0]}, {table['n'][0]:,} images"
    found = last.select(
        pl.lit(f"measured: {size}").alias("whose"), names.alias("training"),
        *(pl.col(name) * 100 for name in KINDS),
    )  # fmt: skip
    paper = pl.DataFrame(
        [{"whose": PAPER, "training": name, **dict(zip(KINDS, values, strict=True))}
         for name, values in printed.items()]
    )  # fmt: skip
    long = pl.concat([found, paper]).unpivot(
        list(KINDS), index=["whose", "training"], variable_name="accuracy"
    )
    # A word for each row: a longer one pushes the axis' title onto the other table.
    long = long.with_columns(
        pl.col("accuracy").replace_strict(KINDS),
        pl.col("training").str.replace(" penalty", "").replace("no", "none"),
    )
    return panels(
        [
            matrix(rows, "accuracy", "training", "value", title=str(whose), y_title="penalty",
                   x_title="test accuracy, per cent", value_title="per cent", digits=3)
            for (whose,), rows in long.partition_by(
                "whose", as_dict=True, maintain_order=True
            ).items()
        ],
        columns=2,
    )  # fmt: skip


def verdicts(table: pl.DataFrame, about: Mapping[str, Claim]) -> list[Verdict]:
    """The gains in pairs; undecided for networks that are not the paper's."""
    last = table.filter(pl.col("step") == pl.col("steps"))
    plain = last.filter(l1=0.0)
    pairs = last.filter(pl.col("l1") > 0).join(plain, on="seed", suffix=" plain").select(
        "seed",
        *((pl.col(kind) - pl.col(f"{kind} plain")).alias(kind)
          for kind in ("adversarial", "standard")),
    )  # fmt: skip
    claims = Claims(about)
    found = [
        claims.above(id, sample(pairs, kind), 0,
            what=f"{kind} test accuracy at the end less that without the penalty, in pairs,")
        for id, kind in (("a", "adversarial"), ("b", "standard"))
    ]  # fmt: skip
    if table["depth"].min() < SIZE:  # type: ignore[operator]
        found = [undecide(one, REASON) for one in found]
    return runs.with_note(table, found)
