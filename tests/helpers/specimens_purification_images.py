"""Specimens of purification's figures on images: tables in which claims hold, and what breaks them.

The control of all of them is clean training that goes on for as many epochs: a network on which
adversarial training did nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
from nulls import Null, Specimen

SEEDS = 3
NOTHING = "as many more clean epochs"


def noisy(value: float, seed: int = 0) -> np.ndarray:
    """One value per seed, a little apart."""
    return value * (1 + 1e-4 * np.random.default_rng(seed).standard_normal(SEEDS))


def ends(true: Mapping[str, float], changes: Mapping[str, float] | None = None) -> pl.DataFrame:
    """The rows that decide, as they would be, but for the changes."""
    row = {name: noisy(value) for name, value in {**true, **(changes or {})}.items()}
    return pl.DataFrame({"part": "end", "seed": range(SEEDS), **row})


def plain(
    true: Mapping[str, float],
    chance: Mapping[str, float] | None = None,
    **controls: tuple[Mapping[str, float], tuple[str, ...]],
) -> Specimen:
    """A specimen of an experiment whose claims read one row per seed."""
    return Specimen(
        table=ends(true),
        measured=tuple(true),
        chance={**dict.fromkeys(true, 0.5), **(chance or {})},
        controls={
            NOTHING if name == "nothing" else name.replace("_", " "): Null(ends(true, some), broken)
            for name, (some, broken) in controls.items()
        },
    )


def same(true: Mapping[str, float], *names: str) -> dict[str, float]:
    """The adversarial network's numbers where it is the control."""
    return {f"adversarial: {name}": true[f"control: {name}"] for name in names}


FIG1 = {
    "clean: robust": 0.03, "control: robust": 0.02, "adversarial: robust": 0.25,
    "clean: high frequencies": 0.4, "control: high frequencies": 0.4,
    "adversarial: high frequencies": 0.3, "identity": 0.99,
}  # fmt: skip


def fig1() -> Specimen:
    nothing = same(FIG1, "robust", "high frequencies")
    return plain(
        FIG1,
        {"identity": 0.03},
        nothing=(nothing, ("robust", "cleaner")),
        other_filters=({"identity": 0.03}, ("same",)),
    )


FIG2 = {
    "clean: left": 0.9, "adversarial: left": 0.9, "clean: pairs": 0.6, "adversarial: pairs": 0.6,
    "kept": 0.98, "control: kept": 1.0, "theta(w, w')": 0.95, "theta(w0, w)": 0.08,
    "theta(w0, w')": 0.08, "control: theta(w, w')": 0.98,
}  # fmt: skip


def fig2() -> Specimen:
    def table(changes: Mapping[str, float] | None = None) -> pl.DataFrame:
        return pl.concat(
            ends(FIG2, changes).with_columns(start_scale=pl.lit(scale)) for scale in (0.1, 1.0)
        )

    def labels(*names: str) -> tuple[str, ...]:
        return tuple(f"{name}/{scale}" for name in names for scale in ("0.1", "1"))

    lazy = {"clean: left": 0.0, "adversarial: left": 0.0, "theta(w0, w')": 0.9}
    new = {"kept": 0.0, "theta(w, w')": 0.1, "control: theta(w, w')": 0.1}
    return Specimen(
        table=table(),
        measured=tuple(FIG2),
        chance={**dict.fromkeys(FIG2, 0.1), "kept": 0.0},
        controls={
            NOTHING: Null(table({"theta(w, w')": 0.98}), labels("turned")),
            "a network that hardly moves": Null(table(lazy), labels("left", "gap")),
            "new features": Null(table(new), labels("kept", "gap")),
            "one feature many times": Null(
                table({"clean: pairs": 0.1, "adversarial: pairs": 0.1}), labels("pairs")
            ),
        },
    )


def fig3() -> Specimen:
    def table(bias: float) -> pl.DataFrame:
        x = np.linspace(-2, 2, 81)
        pair = np.sign(x) * np.maximum(np.abs(x) - bias, 0)
        return pl.DataFrame({"x": x, "linear": x, "thresholded": pair, "bias": 0.5})

    return Specimen(
        table=table(0.5),
        measured=("thresholded",),
        bugs={"a pair without its bias": Null(table(0.0), ("zero", "shift"))},
    )


FIG4 = {
    "start: error": 0.7, "clean: error": 0.35, "control: error": 0.35, "adversarial: error": 0.28,
}  # fmt: skip


def fig4() -> Specimen:
    return plain(
        FIG4,
        nothing=(same(FIG4, "error"), ("control",)),
        random_features=({"adversarial: error": 0.7}, ("sparse", "control", "learned")),
    )


def fig5() -> Specimen:
    def table(end: float) -> pl.DataFrame:
        rows = [
            {"stage": "clean", "epoch": epoch, "order": k, "layer": f"ReLU {k + 1}", "seed": seed,
             "active": (0.5 + (end - 0.5) * (epoch - 1) / 2) * (1 + 1e-4 * seed)}
            for epoch in (1, 2, 3) for k in range(5) for seed in range(SEEDS)
        ]  # fmt: skip
        return pl.DataFrame(rows)

    return Specimen(
        table=table(0.35),
        measured=("active",),
        chance={"active": 0.5},
        controls={"activity that stays": Null(table(0.5), ("every", "last"))},
    )


SMOOTH = {
    "clean: autocorrelation": 0.65, "control: autocorrelation": 0.66,
    "adversarial: autocorrelation": 0.8,
}  # fmt: skip


def fig6() -> Specimen:
    return plain(SMOOTH, nothing=(same(SMOOTH, "autocorrelation"), ("smoother",)))


FIG7 = {
    **SMOOTH, "clean: high frequencies": 0.32, "control: high frequencies": 0.32,
    "adversarial: high frequencies": 0.2,
}  # fmt: skip


def fig7() -> Specimen:
    nothing = same(FIG7, "autocorrelation", "high frequencies")
    return plain(FIG7, nothing=(nothing, ("frequencies", "smoother")))


FIG8 = {
    "third: identity": 0.98, "third: theta": 0.85, "start: theta": 0.1, "start: identity": 0.7,
}  # fmt: skip


def fig8() -> Specimen:
    return plain(
        FIG8,
        {"third: identity": 0.03, "start: identity": 0.03},
        filters_that_are_swapped=(
            {"third: identity": 0.1, "third: theta": 0.1, "start: identity": 0.03},
            ("early", "emerge", "start"),
        ),
        filters_that_stay=({"third: theta": 1.0, "start: theta": 0.99}, ("emerge",)),
    )


FIG9 = {
    "clean: robust": 0.03, "back to clean: robust": 0.02, "from random: robust": 0.25,
    "clean: high frequencies": 0.4, "adversarial: high frequencies": 0.3,
    "back to clean: high frequencies": 0.38, "from random: high frequencies": 0.3,
}  # fmt: skip


def fig9() -> Specimen:
    stays = {"back to clean: robust": 0.25, "back to clean: high frequencies": 0.3}
    clean = {"from random: robust": 0.03, "from random: high frequencies": 0.4}
    return plain(
        FIG9,
        a_robust_network_that_stays=(stays, ("back", "dense")),
        clean_training_from_random=(clean, ("direct", "pure")),
    )


def fig10() -> Specimen:
    def table(robust: float) -> pl.DataFrame:
        stages = {"clean": 0.65, "control": 0.66, "adversarial": robust}
        rows = [
            {"part": "layer", "layer": layer, "stage": stage, "seed": seed,
             "autocorrelation": value * (1 + 1e-4 * seed)}
            for layer in ("conv2", "conv3", "conv4") for stage, value in stages.items()
            for seed in range(SEEDS)
        ]  # fmt: skip
        return pl.DataFrame(rows)

    return Specimen(
        table=table(0.8),
        measured=("autocorrelation",),
        chance={"autocorrelation": 0.5},
        controls={NOTHING: Null(table(0.66), ("smoother",))},
    )


FIG11 = {
    **SMOOTH, "clean: robust": 0.02, "theta(w, w')": 0.9, "theta(w0, w')": 0.3, "kept": 0.9,
}  # fmt: skip


def fig11() -> Specimen:
    new = {"theta(w, w')": 0.3, "kept": 0.0}
    return plain(
        FIG11,
        {"kept": 0.1},
        nothing=(same(FIG11, "autocorrelation"), ("smoother",)),
        new_features=(new, ("gap", "kept")),
        robust_from_below=({"clean: robust": 0.2}, ("fooled",)),
    )


FIG12 = {
    "start: image error": 0.67, "clean: image error": 0.29, "control: image error": 0.29,
    "adversarial: image error": 0.23, "clean: perturbation error": 0.5,
    "control: perturbation error": 0.5, "adversarial: perturbation error": 0.4,
    "clean: outside the span": 1e-3,
}  # fmt: skip


def fig12() -> Specimen:
    nothing = same(FIG12, "image error", "perturbation error")
    return plain(
        FIG12,
        nothing=(nothing, ("order", "sparser", "perturbations")),
        too_few_features=({"clean: outside the span": 0.2}, ("span",)),
    )


def fig13() -> Specimen:
    def table(weak: float, strong: float) -> pl.DataFrame:
        nets = {"clean": 0.65, "control": 0.66, "linf(4/255)": weak, "linf(8/255)": strong}
        rows = [
            {"part": "network", "trained": name, "seed": seed,
             "autocorrelation": value * (1 + 1e-4 * seed)}
            for name, value in nets.items() for seed in range(SEEDS)
        ]  # fmt: skip
        return pl.DataFrame(rows)

    return Specimen(
        table=table(0.75, 0.8),
        measured=("autocorrelation",),
        chance={"autocorrelation": 0.5},
        controls={
            NOTHING: Null(table(0.66, 0.66), ("each", "stronger")),
            "attackers the other way round": Null(table(0.8, 0.75), ("stronger",)),
        },
    )


def table1() -> Specimen:
    def table(clean: Any = (0.48, 0.03), random: Any = (0.4, 0.23), pretrained: Any = (0.44, 0.24)):
        trainings = {"clean training": clean, "adversarial, from random": random,
                     "adversarial, from clean": pretrained}  # fmt: skip
        return pl.DataFrame([
            {"against": name, "training": words, "seed": seed,
             "clean": pair[0] * (1 + 1e-4 * seed), "robust": pair[1] * (1 + 1e-4 * seed)}
            for name in ("linf(4/255)", "linf(8/255)") for words, pair in trainings.items()
            for seed in range(SEEDS)
        ])  # fmt: skip

    return Specimen(
        table=table(),
        measured=("clean", "robust"),
        controls={
            NOTHING: Null(table(random=(0.48, 0.03), pretrained=(0.48, 0.03)), ("robust",)),
            "a start that does harm": Null(table(pretrained=(0.35, 0.15)), ("no worse", "clean")),
            "an attack that is too weak": Null(table(clean=(0.48, 0.3)), ("fooled", "robust")),
        },
    )


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    f"purification/{one.__name__}": one
    for one in (fig1, fig2, fig3, fig4, fig5, fig6, fig7, fig8, fig9, fig10, fig11, fig12, fig13,
                table1)
}  # fmt: skip
