"""Figure 12: robust features reconstruct images, and perturbations of robust networks, sparsely.

First row: squared error of Lasso reconstructions against the share of nonzeros, from random, clean
and robust features. The paper: robust features need the fewest, random ones the most. Second row:
adversarial perturbations of the clean network (clean_delta) and of the robust one (robust_delta),
scaled like images (footnote 19), from robust features. The paper: clean_delta needs many more,
though it lies in their span (Remark 8.2, regression error below 5e-5 for AlexNet).

The control is the dictionary of a network whose clean training went on for as many epochs. At paper
scale AlexNet and 100 images: a GPU is expected for the training, about an hour per seed on one.
"""

from typing import Any

import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical, ours
from ....report.charts import AnyChart, curves, panels
from ._parts import image_scales as scales
from ._parts.image_reconstructions import reconstructions
from ._parts.image_runs import ImageSettings

ABOUT = lab.About(
    paper="purification",
    item="Figure 12",
    title="Sparse reconstruction of images and of adversarial perturbations",
    seconds={"smoke": 10, "laptop": 360, "paper": 13_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("AlexNet", "24 images"),
    claims={
        "order": empirical("At 5 % of nonzeros robust features have a smaller error than clean "
                           "ones, and clean ones than random ones"),
        "sparser": ours("Robust features have an error of less than 0.9 of the clean ones', and of "
                        "their control's"),
        "perturbations": empirical("Perturbations of the clean network, and of its control, have a "
                                   "larger error from robust features than those of the robust "
                                   "network"),
        "span": empirical("though the former lie in the span of robust features: all but 1 % of "
                          "their squared size"),
    },
)  # fmt: skip


class Case(ImageSettings):
    """What is reconstructed: see `ImageReconstructions`."""

    reconstructed: int = 24


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    some = {"smoke": {"reconstructed": 4}, "paper": {"reconstructed": 100}}
    return scales.cases(Case, scale, seeds, "AlexNet", **some)


def compute(case: Case) -> pl.DataFrame:
    """Paths (part "path") and errors at 5 % (part "end")."""
    table = reconstructions(case, reconstructed=case.reconstructed).table
    at = table.filter(part="at", share=0.05)
    numbers = {
        **dict(at.filter(target="images").select(
            pl.format("{}: image error", "features"), "error").iter_rows()),
        **dict(at.filter(pl.col("target") != "images").select(
            pl.format("{}", pl.col("target").str.strip_prefix("perturbations of "))
            + ": perturbation error", "error").iter_rows()),
        "clean: outside the span": table.filter(
            part="span", target="perturbations of clean")["error"].item(),
    }  # fmt: skip
    return pl.concat([table.filter(part="path"), scales.end_row(case, numbers)], how="diagonal")


def figure(table: pl.DataFrame) -> AnyChart:
    paths = table.filter(part="path")
    titles: dict[str, Any] = {
        "x_title": "share of nonzeros (mean over images)",
        "y_title": "squared error, over ||x||^2",
    }
    images = curves(
        _mean_path(paths.filter(target="images"), "features"), "share", "error", "features",
        title="Images from features of each stage", log_x=True, **titles,
    )  # fmt: skip
    deltas = paths.filter(pl.col("target") != "images").rename({"target": "of"})
    second = curves(
        _mean_path(deltas, "of"), "share", "error", "of", log_x=True,
        title="Perturbations from robust features", **titles,
    )  # fmt: skip
    return panels([images, second], columns=2)


def _mean_path(paths: pl.DataFrame, by: str) -> pl.DataFrame:
    """Seeds meet at the same weight of the l1 norm: their mean share and mean error there."""
    return paths.group_by(by, "fraction", maintain_order=True).agg(
        pl.col("share").mean(), pl.col("error").mean()
    )


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, what = Claims(ABOUT.claims), "ratio of squared errors at 5 % nonzeros"
    ratios = scales.ratios
    order = {
        "robust over clean": ratios(table, "image error", "adversarial", "clean")["over clean"],
        "clean over random": ratios(table, "image error", "clean", "start")["over start"],
    }
    sparser = ratios(table, "image error", "adversarial", "clean", "control")
    mine = scales.ended(table, "adversarial: perturbation error")
    deltas = {
        name: scales.ended(table, f"{name}: perturbation error") / mine
        for name in ("clean", "control")
    }
    return [
        claims.below("order", order, 1, what=what),
        claims.below("sparser", sparser, 0.9, what=what),
        claims.above("perturbations", deltas, 1, what=f"{what}, theirs over the robust network's"),
        claims.below(
            "span", scales.ended(table, "clean: outside the span"), 0.01,
            what="share of the clean network's perturbations outside of the span",
        ),
    ]  # fmt: skip
