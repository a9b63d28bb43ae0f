"""Specimens of purification's other experiments: tables in which their claims hold, and nulls."""

from collections.abc import Callable, Mapping
from math import log

import numpy as np
import polars as pl
from nulls import Null, Specimen
from scipy.stats import norm

from advlab.papers.purification.experiments import dimension_trends, linf_threats, radius_curves

SEEDS, PRESETS = 5, ("random", "wide_margin")


def noisy(value: float, size: float = 1e-4, seed: int = 0) -> np.ndarray:
    """One value per seed, a little apart."""
    return value * (1 + size * np.random.default_rng(seed).standard_normal(SEEDS))


# Pairs that start pure.

PURE = {
    "start: dense over top": 0.01, "start: worst": 0.7, "clean: dense over top": 6.0,
    "clean: worst": 0.46, "clean: clean": 0.999, "adversarial: dense over top": 0.6,
    "adversarial: worst": 0.75,
}  # fmt: skip


def started_pure(changes: Mapping[str, float] | None = None) -> pl.DataFrame:
    row = {name: noisy(value) for name, value in {**PURE, **(changes or {})}.items()}
    return pl.DataFrame({"part": "end", "seed": range(SEEDS), **row})


def pure_start() -> Specimen:
    nothing = {"adversarial: dense over top": 6.0, "adversarial: worst": 0.46}
    same = {"clean: dense over top": 0.01, "clean: worst": 0.7}
    return Specimen(
        table=started_pure(),
        measured=tuple(PURE),
        chance={name: 0.5 if "dense" not in name else 0.3 for name in PURE},
        controls={
            "as many more clean steps": Null(started_pure(nothing), ("19d", "19e")),
            "no clean training": Null(started_pure(same), ("19a", "19b")),
        },
        bugs={
            "a start along M w*": Null(started_pure({"start: dense over top": 9.0}), ("19s",)),
        },
    )


# Random starts and transfer.


def trained(worst=0.7, dense=1.5, other=0.12, pure=0.85, clean=0.2, first=0.71, own=0.1):
    """What would be measured: `other` and `pure` at clean networks' points."""
    nets = {"direct": (worst, dense), "clean": (clean, 9.0), "adversarial": (first, 1.6)}
    ends = [
        pl.DataFrame({"part": "end", "network": name, "seed": range(SEEDS), "worst": noisy(a),
                      "dense over top": noisy(b)})
        for name, (a, b) in nets.items()
    ]  # fmt: skip
    names = ["clean 1", "clean 2", "clean 3", "adversarial 1", "adversarial 2"]
    cells = [
        pl.DataFrame({"part": "transfer", "crafted": a, "shown": b, "seed": range(SEEDS),
                      "accuracy": noisy(own if a == b else other if "clean" in b else pure)})
        for a in [*names, "universal"]
        for b in names
    ]  # fmt: skip
    return pl.concat([*ends, *cells], how="diagonal")


def random_start() -> Specimen:
    return Specimen(
        table=trained(),
        measured=("worst", "dense over top", "accuracy"),
        chance={"worst": 0.5, "dense over top": 3.0, "accuracy": 0.5},
        controls={
            "clean training": Null(
                trained(worst=0.2, dense=9.0, first=0.2, pure=0.12),
                ("purer", "robust", "clean_first", "14d"),
            ),
            "attacks that break nobody": Null(trained(other=0.9, own=0.9), ("14c",)),
            "attacks on one network only": Null(trained(other=0.9), ("14c",)),
        },
    )


# Curves over the radius.

ACCURACY = {
    radius_curves.LINEAR: 0.02, radius_curves.POLYNOMIAL: 0.3, radius_curves.KERNEL: 0.25,
    radius_curves.CLEAN_NET: 0.2, radius_curves.PURE_NET: 0.7, radius_curves.ORACLE: 0.78,
    radius_curves.THRESHOLDED: 0.8,
}  # fmt: skip


def swept(changes: Mapping[str, float] | None = None) -> pl.DataFrame:
    rows = [
        {"preset": preset, "seed": seed, "share": share, "classifier": name, "accuracy": one}
        for preset in PRESETS
        for share in radius_curves.SHARES
        for name, value in {**ACCURACY, **(changes or {})}.items()
        for seed, one in enumerate(noisy(value))
    ]
    return pl.DataFrame(rows)


def over_radii() -> Specimen:
    def both(*names: str) -> tuple[str, ...]:
        return tuple(f"{name}/{preset}" for name in names for preset in PRESETS)

    return Specimen(
        table=swept(),
        measured=("accuracy",),
        chance={"accuracy": 0.5},
        controls={
            "as many more clean steps": Null(
                swept({radius_curves.PURE_NET: 0.2}), both("5", "6", "simple_rules")
            ),
            "a robust linear rule": Null(
                swept({radius_curves.LINEAR: 0.75}), both("16", "simple_rules")
            ),
            "an oracle out of reach": Null(swept({radius_curves.ORACLE: 0.9}), both("6")),
        },
    )


# Linear rules and tangent kernels: rows (seed, model, quantity, x, value).

KERNELS = {
    ("linear, oracle", "clean"): 1.0, ("linear, oracle", "robust"): 0.02,
    ("linear, trained", "clean"): 0.9, ("linear, trained", "robust"): 0.03,
    ("NTK, clean", "clean"): 0.99, ("NTK, clean", "pgd"): 0.03,
    ("NTK, adversarial", "clean"): 0.98, ("NTK, adversarial", "pgd"): 0.3,
    ("NTK, best trial", "clean"): 0.98, ("NTK, best trial", "pgd"): 0.4,
    ("NTK as printed", "clean"): 0.499, ("NTK as printed", "closed"): 0.5,
}  # fmt: skip
FORMS = {
    ("SymmetricReLU", "Monte Carlo", 0.0): 1e-4, ("SymmetricReLU", "differences", 0.0): 1e-10,
    ("NTK", "differences", 0.0): 1e-10, ("step", "taylor", 40.0): 1e-15,
    **{(f"{kind} v", "tensor ratio", d): d**0.6 for kind in ("Gaussian", "worst")
       for d in (32.0, 64.0, 128.0)},
}  # fmt: skip
EXACT = {"linear, oracle clean", "NTK as printed closed"}


def long_rows(values: Mapping[tuple, float], preset: str, x: float) -> list[dict]:
    """Rows of one preset; exact values have no noise."""
    return [
        {"preset": preset, "seed": seed, "model": model, "quantity": quantity,
         "x": rest[0] if rest else x, "value": one, "theory": "silent: k"}
        for (model, quantity, *rest), value in values.items()
        for seed, one in enumerate(
            noisy(value, 0.0 if f"{model} {quantity}" in EXACT else 1e-4, len(model))
        )
    ]  # fmt: skip


def low_complexity(changes: Mapping[tuple, float] | None = None) -> pl.DataFrame:
    changes = changes or {}
    kernels = {**KERNELS, **{key: one for key, one in changes.items() if key in KERNELS}}
    forms = {**FORMS, **{key: one for key, one in changes.items() if key in FORMS}}
    rows = [row for preset in PRESETS for row in long_rows(kernels, preset, 0.0)]
    return pl.DataFrame(rows + long_rows(forms, "random", 0.0))


def both_of(*names: str) -> tuple[str, ...]:
    """16/clean of both presets is 16/random/clean and 16/wide_margin/clean."""
    parts = [name.split("/") for name in names]
    return tuple(f"{first}/{preset}/{last}" for first, last in parts for preset in PRESETS)


def linear_and_ntk() -> Specimen:
    robust = {(name, "pgd"): 0.7 for name in ("NTK, clean", "NTK, adversarial", "NTK, best trial")}
    robust |= {("linear, oracle", "robust"): 0.7, ("linear, trained", "robust"): 0.7}
    return Specimen(
        table=low_complexity(),
        measured=("value",),
        chance={"value": 0.5},
        controls={
            "robust rules of low complexity": Null(
                low_complexity(robust),
                both_of("16/oracle", "16/trained", "17/robust", "17/best", "17/plain"),
            ),
            "kernels that learn nothing": Null(
                low_complexity({("NTK, adversarial", "clean"): 0.5}), both_of("17/clean")
            ),
        },
        bugs={
            "labels of another w*": Null(
                low_complexity({("linear, oracle", "clean"): 0.999}), both_of("16/clean")
            ),
            "a plus between the indicators": Null(
                low_complexity({("NTK as printed", "clean"): 0.99,
                                ("NTK as printed", "closed"): 0.99}),
                both_of("18/closed", "18/random"),
            ),
            "a smoothed ReLU without its density": Null(
                low_complexity({("SymmetricReLU", "Monte Carlo", 0.0): 0.04}), ("21/relu",)
            ),
            "a gradient without the slope of the gates": Null(
                low_complexity({("NTK", "differences", 0.0): 0.1}), ("21/gradients",)
            ),
            "Claim G.6 as printed": Null(
                low_complexity({("step", "taylor", 40.0): 0.3}), ("21/taylor",)
            ),
        },
        reported=("G4",),
    )  # fmt: skip


# linf.

LINF = {
    ("clean network", "universal", 1.0): 0.1, ("clean network", "universal", 1.5): 0.01,
    ("clean network", "worst", 1.0): 0.08, ("adversarial network", "clean", 1.0): 0.99,
    ("adversarial network", "worst", 1.0): 0.93, ("ReLU oracle", "worst", 1.0): 0.95,
    ("linear, oracle", "clean"): 1.0, ("linear, oracle", "robust"): 0.02,
    ("linear, trained", "robust"): 0.2, ("NTK, clean", "pgd"): 0.02,
    ("NTK, adversarial", "clean"): 0.98, ("NTK, adversarial", "pgd"): 0.4,
}  # fmt: skip


def in_linf(changes: Mapping[tuple, float] | None = None) -> pl.DataFrame:
    values = {**LINF, **(changes or {})}
    return pl.DataFrame([row for one in linf_threats.NAMES for row in long_rows(values, one, 1.0)])


def linf() -> Specimen:
    nothing = {("adversarial network", "worst", 1.0): 0.08}
    robust = {("NTK, clean", "pgd"): 0.6, ("NTK, adversarial", "pgd"): 0.6,
              ("linear, oracle", "robust"): 0.6, ("linear, trained", "robust"): 0.6}  # fmt: skip
    return Specimen(
        table=in_linf(),
        measured=("value",),
        chance={"value": 0.5},
        controls={
            "as many more clean steps": Null(
                in_linf(nothing), both_of("5/worst", "5/times", "5/oracle")
            ),
            "bounds of l2 only": Null(
                in_linf({("adversarial network", "worst", 1.0): 0.72}), both_of("5/worst")
            ),
            "robust rules of low complexity": Null(
                in_linf(robust), both_of("16/oracle", "16/trained", "17/robust", "17/plain")
            ),
            "a robust clean network": Null(
                in_linf({("clean network", "universal", 1.0): 0.9,
                         ("clean network", "universal", 1.5): 0.9,
                         ("clean network", "worst", 1.0): 0.9}),
                both_of("2/tau", "2/beyond", "5/times"),
            ),
        },
        bugs={
            "labels of another w*": Null(
                in_linf({("linear, oracle", "clean"): 0.999}), both_of("16/clean")
            )
        },
    )  # fmt: skip


# Lottery tickets.


def tickets(pot=1.0, sure=1.0, kept=0.56, won=0.74, end=0.05) -> pl.DataFrame:
    """Set sizes over their laws at four d, and the training of one network per seed."""
    starts = [
        pl.DataFrame({"part": "start", "d": d, "seed": range(SEEDS),
                      "pot": noisy(0.22 * pot, 3e-3, d), "sure": noisy(0.1 * sure, 3e-3, d + 1),
                      "expected pot": 0.22, "expected sure": 0.1, "cover": noisy(0.1)})
        for d in (64, 128, 256, 512)
    ]  # fmt: skip
    along = [
        pl.DataFrame({"part": "training", "d": 256, "seed": range(SEEDS), "step": step,
                      "loss": noisy(loss), "kept": noisy(share),
                      "won": noisy(won) if step == 1000 else [None] * SEEDS})
        for step, loss, share in ((0, log(2), 0.1), (10, 0.99 * log(2), kept),
                                  (500, 0.2 + end, 0.9), (1000, end, 1.0))
    ]  # fmt: skip
    parts = [part.with_columns(pl.col("won").cast(pl.Float64)) for part in along]
    return pl.concat([*starts, *parts], how="diagonal")


def lottery() -> Specimen:
    return Specimen(
        table=tickets(),
        measured=("pot", "sure", "cover", "loss", "kept", "won"),
        chance={"kept": 1 / 256, "won": 1 / 256, "loss": log(2), "pot": 0.3, "sure": 0.2},
        controls={
            "no training": Null(tickets(kept=1.0, won=1.0, end=log(2)), ("early", "kept")),
            "atoms drawn late": Null(tickets(kept=0.1, won=0.1), ("early", "kept")),
        },
        bugs={
            "a law without the other atoms": Null(tickets(sure=0.955), ("sure",)),
            "a law without its half": Null(tickets(sure=0.5, pot=0.5), ("sure", "pot")),
            "the potential tickets' threshold": Null(tickets(sure=0.91), ("sure",)),
            "the sure tickets' threshold": Null(tickets(pot=0.91), ("pot",)),
        },
        reported=("cover",),
    )


# Trends over d.

STORED = ("G1", "G2", "G7", "theta(w0, w)", "1 - theta(w, w')", "G7, control",
          "1 - theta(w, w'), control")  # fmt: skip
"""What falls as a power of d."""
RADII = {"clean": (0.9, -0.35), "adversarial": (1.5, -0.2), "oracle": (1.3, -0.2)}
"""The radius at which half break: factor and power of d."""


def over_d(
    power: float = -0.3,
    gap: float = -0.05,
    beta: float = 0.1,
    radii: Mapping[str, float] | None = None,
    mixtures: Mapping[str, float] | None = None,
) -> pl.DataFrame:
    """Quantities that are d^power, a gap with a slope, radii, and the parts of Theorem 5.2.

    Args:
        power: of the ratios; with 0 or more errors do not fall either.
        gap: the slope of the gap to the oracle against log d.
        beta: the average dense part.
        radii: the powers of d of some radii, others than in the specimen.
        mixtures: "largest" is the power of the largest beta; other columns have a value.
    """
    changed = {"largest": -0.6, "most own atoms": 2.0, "winners/d": 0.08, "winners/d, top": 1.0,
               "own": 1.0}  # fmt: skip
    changed |= mixtures or {}
    largest, own = changed.pop("largest"), changed.pop("own")
    rows = []
    for d in (96, 128, 192, 256, 384):
        row = {name: noisy(d**power, seed=d) for name in STORED}
        fall = 1.0 if power >= 0 else 1 / log(d)
        for name in ("clean error, clean", "clean error, adversarial", "universal, clean"):
            row[name] = noisy(0.1 * fall, seed=d)
        for net, (size, mine) in RADII.items():
            row[f"half radius, {net}"] = noisy(size * d ** (radii or {}).get(net, mine), seed=d)
        for end in ("", ", top"):
            row[f"largest beta{end}"] = noisy(d**largest, seed=d)
        row |= {name: noisy(value, seed=d) for name, value in changed.items()}
        # Two tails of (c1 - c2) log d in each of d coordinates, at a width of 5 d.
        level = (2 + 2 * 0.95 * log(5) / log(d) - 0.05 * log(5) / log(d)) * log(d)
        row["own atoms"] = noisy(own * 2 * d * norm.sf(level**0.5), seed=d)
        row |= {"oracle gap": noisy(0.3 + gap * log(d), seed=d), "beta d/k": noisy(beta, seed=d),
                "universal, adversarial": noisy(0.8)}  # fmt: skip
        fixed = {"robust": noisy(0.7), "oracle": noisy(0.8)}
        rows.append(pl.DataFrame({"d": d, "k": d**0.4, "seed": range(SEEDS), **fixed, **row}))
    return pl.concat(rows)


def trends() -> Specimen:
    falls = tuple(f"{label}/falls" for label in dimension_trends.FALLING)
    errors = tuple(f"{label}/falls" for label in dimension_trends.LINEAR_FALLING)
    # Random weights have no coordinate above one half, and many in S_pot.
    chance = {"beta d/k": 0.5, "winners/d": 0.0, "winners/d, top": 0.0, "most own atoms": 20.0,
              "own atoms": 20.0}  # fmt: skip
    chance |= {f"half radius, {net}": 0.3 for net in RADII}
    chance |= dict.fromkeys(("largest beta", "largest beta, top"), 0.5)
    stays = dict.fromkeys(RADII, 0.0)
    no_training = {"largest": -0.1, "winners/d": 0.0, "winners/d, top": 0.0}
    return Specimen(
        table=over_d(),
        measured=(*STORED, *chance, *(dimension_trends.LINEAR[label] for label in
                                      dimension_trends.LINEAR_FALLING),
                  "robust", "oracle", "oracle gap"),
        chance=chance,
        controls={
            "as at every d the same": Null(
                over_d(power=0.0, gap=0.0, radii=stays),
                (*falls, *errors, "6", "5.1c/radius/order", "5.3b/radius/order", "5/gap"),
            ),
            "what grows": Null(over_d(power=0.2, gap=0.01, beta=0.5),
                               (*falls, *errors, "6", "7/level")),
            "no dense part": Null(over_d(beta=0.002), ("7/level",)),
            "as many more clean steps": Null(
                over_d(radii={"adversarial": RADII["clean"][1]}), ("5.3b/radius/order", "5/gap")
            ),
            "FGM that is overfitted as d grows": Null(
                over_d(-0.3, 0.05, 0.1, {"adversarial": -0.4}, {"clean error, adversarial": 0.1}),
                ("5.3/clean/falls", "6", "5.3b/radius/order", "5/gap"),
            ),
            "clean networks as robust as 1/sqrt(k)": Null(
                over_d(radii={"clean": -0.2}),
                ("5.1c/radius/order", "5.3b/radius/order", "5/gap"),
            ),
            "random neurons": Null(
                over_d(mixtures=no_training),
                ("5.2/1/order", "5.2/1/top", "5.2/2/many", "5.2/2/top"),
            ),
        },
        bugs={"a law of one tail": Null(over_d(mixtures={"own": 2.0}), ("5.2/N/law",)),
              "sets of half of the atoms": Null(over_d(mixtures={"own": 0.5}), ("5.2/N/law",))},
        reported=(*dimension_trends.POWERS, *dimension_trends.LINEAR),
    )  # fmt: skip


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "purification/pure_start": pure_start,
    "purification/random_start": random_start,
    "purification/radius_curves": over_radii,
    "purification/linear_and_ntk": linear_and_ntk,
    "purification/linf_threats": linf,
    "purification/lottery_tickets": lottery,
    "purification/dimension_trends": trends,
}
