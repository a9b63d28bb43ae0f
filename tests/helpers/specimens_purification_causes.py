"""Specimens of purification's attackers and interventions: tables in which the claims hold."""

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl
from nulls import Null, Specimen

from advlab.papers.purification.experiments import (
    any_attacker,
    causality,
    noise_and_dictionaries,
)

SEEDS = 5


def noisy(value: float, seed: int = 0) -> np.ndarray:
    """One value per seed, a little apart; zeros stay zeros."""
    return value * (1 + 1e-4 * np.random.default_rng(seed).standard_normal(SEEDS))


# Attackers: clean, own, worst, certified accuracy; gap, floor and dense/top.

JUDGED = ("clean", "own", "worst", "certified", "linearity gap", "FGM floor", "dense over top",
          "G7", "best worst")  # fmt: skip
NETWORKS = {
    "clean network": (1.0, None, 0.19, 0.01, 5.4, 0.0, 9.7, None, None),
    "no attack": (1.0, 0.18, 0.16, 0.0, 6.6, 0.0, 10.4, 0.02, 0.19),
    "random draw": (1.0, 1.0, 0.16, 0.0, 6.4, 0.0, 10.2, 0.03, 0.19),
    "universal": (0.46, 1.0, 0.01, 0.0, 8.5, 0.0, -2.2, 0.5, 0.6),
    "transfer": (0.4, 1.0, 0.01, 0.0, 9.4, 0.0, -2.6, 0.5, 0.6),
    "FGM": (0.97, 0.78, 0.72, 0.4, 0.5, 0.65, 2.0, 0.4, 0.72),
    "PGD": (0.97, 0.75, 0.73, 0.41, 0.46, 0.66, 1.9, 0.4, 0.73),
}
UNDER = {f"under {name}": 0.2 for name in any_attacker.OWN} | {"under random draw": 0.999}
Changes = Mapping[str, Mapping[str, float]]


def attacked(changes: Changes | None = None) -> pl.DataFrame:
    """One row per network and seed, with some numbers of some networks changed."""
    rows = []
    for name, values in NETWORKS.items():
        row = dict(zip(JUDGED, values, strict=True)) | {"disorder": 0.0}
        row |= UNDER if name == any_attacker.BEFORE else {}
        row |= (changes or {}).get(name, {})
        numbers = {key: noisy(value) for key, value in row.items() if value is not None}
        rows.append(
            pl.DataFrame(
                {"part": "end", "attacker": name, "d": 128, "seed": range(SEEDS)} | numbers
            )
        )
    return pl.concat(rows, how="diagonal")


def any_attacker_specimen() -> Specimen:
    untrained = dict(zip(JUDGED[2:], NETWORKS["no attack"][2:], strict=True))
    nothing = dict.fromkeys(any_attacker.FOUND, untrained | {"own": 0.2, "clean": 1.0})
    treated = tuple(label for label in any_attacker.ABOUT.claims
                    if label not in ("a/random draw", "12/random", "order", "c"))  # fmt: skip
    robust = {"worst": 0.7, "own": 0.75, "clean": 0.97}
    return Specimen(
        table=attacked(),
        measured=(*JUDGED, *UNDER, "disorder"),
        chance=dict.fromkeys((*JUDGED, *UNDER), 0.5),
        controls={
            "as many more clean steps": Null(attacked(nothing), treated),
            "any attacker is as good": Null(
                attacked(dict.fromkeys(("random draw", "universal", "transfer"), robust)),
                ("12", "12/random", "12/leak", "12/collapse"),
            ),
            "attackers that make another network": Null(
                attacked({"universal": {"G7": 1.03}}), ("c/local",)
            ),
            "a worst case that was never robust": Null(
                attacked({"transfer": {"best worst": 0.19}}), ("12/collapse",)
            ),
            "draws that break what is trained on them": Null(
                attacked({"random draw": {"own": 0.55}}), ("a/random draw",)
            ),
            "draws that break the clean network": Null(
                attacked({"clean network": {"under random draw": 0.6}}), ("a/random draw",)
            ),
            "FGM that is overfitted": Null(
                attacked({"FGM": {"worst": 0.36, "certified": 0.0, "FGM floor": 0.01}}),
                ("b/worst", "b/pgd", "b/certified", "F.2/floor"),
            ),
        },
        bugs={"a certificate that is wrong once": Null(
            attacked({"FGM": {"disorder": 1.0}}), ("order",))},
        reported=("c",),
    )  # fmt: skip


# Interventions: clean and worst accuracy, dense/top, the largest part along M w*.

MADE = {
    causality.CLEAN: (1.0, 0.19, 9.7, 1.0),
    causality.CONTROL: (1.0, 0.17, 10.4, 1.0),
    causality.OTHER: (1.0, 0.19, 9.6, 1.0),
    causality.MATCHED: (0.95, 0.13, 11.4, 1.0),
    causality.OWN: (1.0, 0.13, 10.9, 1.0),
    causality.SHORTER: (1.0, 0.41, 7.5, 1.0),
    causality.LENGTHS: (1.0, 0.6, 7.7, 1.0),
    causality.TAKEN: (0.97, 0.6, 2.0, 0.3),
    causality.REMOVED: (0.95, 0.58, -0.2, 0.0),
    causality.PURE: (0.97, 0.7, 1.9, 0.3),
    causality.FEWER: (0.97, 0.69, 1.9, 0.3),
    causality.DIRECTIONS: (0.97, 0.38, 5.2, 1.0),
    causality.SHARED: (0.9, 0.2, 1.9, 0.3),
    causality.NOISE: (0.97, 0.55, 1.9, 0.3),
    causality.GIVEN: (1.0, 0.27, 9.0, 1.0),
}
SHOWN = ("clean", "worst", "dense over top", "largest part")


def intervened(
    changes: Mapping[str, tuple] | None = None,
    slope: float = -0.3,
    size_error: float = 2e-7,
    none: float = 0.6,
) -> pl.DataFrame:
    """One row per network and seed, some networks changed; doses with a slope, and the worst
    accuracy without any."""
    rows = []
    for name, values in {**MADE, **(changes or {})}.items():
        numbers = {key: noisy(value) for key, value in zip(SHOWN, values, strict=True)}
        if name in causality.MATCHES:
            numbers["size error"] = noisy(size_error)
        rows.append(pl.DataFrame({"network": name, "d": 128, "seed": range(SEEDS), **numbers}))
    for dose in causality.DOSES:
        worst = noisy(0.6 + slope * dose if dose else none, int(100 * dose))
        rows.append(pl.DataFrame({"network": "dosed", "dose": dose, "seed": range(SEEDS),
                                  "clean": noisy(0.95), "worst": worst}))  # fmt: skip
    return pl.concat(rows, how="diagonal")


def causality_specimen() -> Specimen:
    same, pure = MADE[causality.CLEAN], MADE[causality.PURE]
    no_effect = {causality.REMOVED: same, causality.GIVEN: pure, causality.SHARED: pure,
                 causality.LENGTHS: same, causality.DIRECTIONS: pure}  # fmt: skip
    any_direction = {causality.OTHER: (0.95, 0.5, 9.0, 1.0), causality.NOISE: (0.9, 0.27, 1.9, 0.3)}
    removed = MADE[causality.REMOVED]
    by_size = dict.fromkeys((causality.MATCHED, causality.OWN), removed)
    some = dict.fromkeys((causality.MATCHED, causality.OWN), (0.98, 0.3, 9.0, 1.0))
    elsewhere = {causality.FEWER: (0.97, 0.4, 1.9, 0.3),
                 causality.CONTROL: (1.0, 0.4, 8.0, 1.0)}  # fmt: skip
    return Specimen(
        table=intervened(),
        measured=(*SHOWN, "size error"),
        chance={"clean": 0.5, "worst": 0.5, "size error": 0.3, "dense over top": 5.0},
        controls={
            "mixtures that do nothing": Null(
                intervened(no_effect, 0.0),
                ("remove", "remove/matched", "remove/own", "remove/shorter", "transplant", "shared",
                 "lengths", "dose", "dose/none", "clean"),
            ),
            "a little of it is better than none": Null(intervened(none=0.5), ("dose/none",)),
            "directions that each neuron has for itself do as much": Null(
                intervened({causality.NOISE: MADE[causality.SHARED]}), ("shared",)
            ),
            "the size of what is taken does it": Null(
                intervened(by_size), ("remove/matched", "remove/own")
            ),
            "a part of the gain by size alone": Null(
                intervened(some), ("remove/matched", "remove/own")
            ),
            "shorter neurons do it": Null(
                intervened({causality.SHORTER: removed}), ("remove/shorter",)
            ),
            "any direction would do": Null(
                intervened(any_direction), ("remove/control", "transplant/control")
            ),
            "recruits or time do it": Null(intervened(elsewhere), ("recruits", "more_clean")),
            "no adversarial training": Null(
                intervened({causality.PURE: same}), ("remove", "transplant", "recruits")
            ),
        },
        bugs={
            "a direction that is not of length 1": Null(
                intervened({causality.REMOVED: (0.95, 0.58, -0.2, 0.2)}), ("projection",)
            ),
            "a control that takes less": Null(intervened(size_error=0.02), ("same_size",)),
        },
    )  # fmt: skip


# Noise and dictionaries.

BOTH = {
    "clean: clean": 0.98, "clean: universal": 0.2, "clean: worst": 0.19,
    "clean: dense over top": 9.0, "FGM: clean": 0.95, "FGM: worst": 0.6,
    "FGM: dense over top": 2.0, "linear": 0.86,
}  # fmt: skip
ALONG = {"no attack": 0.99, "universal": 0.2, "worst": 0.18, "dense over top": 12.0}
"""At every T from T_c on."""


def disturbed(
    changes: Mapping[str, float] | None = None, along: Mapping[str, float] | None = None
) -> pl.DataFrame:
    """One row per setting and seed, the same in all of them but for a little noise; and the long
    clean training, the same from T_c on."""
    row = {name: noisy(value) for name, value in {**BOTH, **(changes or {})}.items()}
    ends = [
        pl.DataFrame({"part": "end", "setting": name, "d": 128, "seed": range(SEEDS), **row})
        for name in noise_and_dictionaries.CHANGES
    ]
    seen = {name: noisy(value) for name, value in {**ALONG, **(along or {})}.items()}
    curve = [
        pl.DataFrame({"part": "curve", "setting": noise_and_dictionaries.LONG, "d": 128, "T": T,
                      "step": round(500 * T), "seed": range(SEEDS), **seen})
        for T in (0.0, 0.5, 1.0, 2.0, 3.0, 4.0)
    ]  # fmt: skip
    return pl.concat([*ends, *curve], how="diagonal")


def noise_and_dictionaries_specimen() -> Specimen:
    nothing = {"FGM: clean": 0.98, "FGM: worst": 0.17, "FGM: dense over top": 9.5}
    gains = ("5.3/noise", "5.2/noise", "5.3/dictionaries", "5.3/margin", "T_f/adversarial", "rho")
    robust = {"clean: universal": 0.9, "clean: worst": 0.7}
    long = {"universal": 0.9, "worst": 0.7}
    return Specimen(
        table=disturbed(),
        measured=(*BOTH, *ALONG),
        chance=dict.fromkeys((*BOTH, *ALONG), 0.5),
        controls={
            "as many more clean steps": Null(disturbed(nothing), gains),
            "clean networks that are robust": Null(
                disturbed(robust, long),
                ("5.1/noise", "5.1/dictionaries", "T_f", "T_f/adversarial", "rho"),
            ),
            "networks that nobody trains": Null(
                disturbed(
                    {"clean: clean": 0.5, "clean: worst": 0.0, "clean: universal": 0.0},
                    {"no attack": 0.5, "universal": 0.0, "worst": 0.0},
                ),
                ("5.1/noise", "5.1/dictionaries", "T_f", "rho"),
            ),
            "a linear rule that is as good": Null(disturbed({"linear": 0.97}), ("3",)),
            "accuracy that is paid": Null(
                disturbed({"FGM: clean": 0.7}), ("5.3/kept", "5.3/margin/kept", "rho")
            ),
        },
    )


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "purification/any_attacker": any_attacker_specimen,
    "purification/causality": causality_specimen,
    "purification/noise_and_dictionaries": noise_and_dictionaries_specimen,
}
