"""Specimens of benign: tables in which the claims hold, and what must break them."""

from collections.abc import Callable
from itertools import product

import numpy as np
import polars as pl
from nulls import Null, Specimen
from specimens_benign_appendix import appendix
from specimens_benign_clusters import clusters
from specimens_benign_lemmas import lemmas, regime
from specimens_benign_scaling import scaling

from advlab.papers.benign.experiments import exponents, fig1, fig2, fig3, fig5, fig6

COIN = {"clean_error": 0.5, "robust_error": 0.5, "train_error": 0.5}
ERRORS = tuple(COIN)


def heat_table(clean=4.0, robust=2.0, **what) -> pl.DataFrame:
    """Maps with contours d ~ mu^power for clean and robust accuracy; `what` replaces columns."""
    rows = []
    for seed, mu, d in product(range(6), fig1._LAPTOP, (1000, 2000, 5000, 10000, 18000)):
        errors = [
            0.1 + 0.4 * np.exp(-(1 + 0.01 * seed) * (mu / 3) ** power * 1000 / d)
            for power in (clean, robust)
        ]
        rows.append(
            {"seed": seed, "mu_norm": float(mu), "d": d, "ratio": 0.1, "beta": 0.1}
            | {"n": 100, "tested": 2000, "train_error": 0.0}
            | {"clean_error": errors[0], "robust_error": max(errors)}
        )
    return pl.DataFrame(rows).with_columns(**{name: pl.lit(v) for name, v in what.items()})


def figure1() -> Specimen:
    return Specimen(
        table=heat_table(),
        measured=ERRORS,
        chance=COIN,
        controls={
            "third and fifth power": Null(heat_table(clean=3.0), ("17a",)),
            "fifth power": Null(heat_table(clean=5.0), ("17a",)),
            "robust like the third": Null(heat_table(robust=3.0), ("17c",)),
            "one power for both": Null(heat_table(clean=3.0, robust=3.0), ("17a", "17b", "17c")),
            "a point that is not fitted": Null(heat_table(train_error=0.01), ("5E",)),
            "flips that the network knows": Null(heat_table(robust_error=0.05), ("6E",)),
        },
    )


def curve_table(**what) -> pl.DataFrame:
    """Runs of figure 2 in which its claims hold; `what` replaces columns by expressions."""
    noise = np.random.default_rng(1)
    rows = []
    for seed in range(6):
        for mu, d, ratio in dict.fromkeys(one for row in fig2.ROWS.values() for one in row):
            for step in (0, 1, 10, 100, 500):
                worse = 0.05 * ratio * d / mu**4 + 0.3 / (1 + step)
                rows.append(
                    {"seed": seed, "mu_norm": mu, "d": d, "ratio": ratio, "step": step}
                    | {"beta": 0.1, "n": 100, "tested": 2000, "train_error": 0.0}
                    | {"loss": 1 / (1 + step), "clean_error": 0.1 + 1e-3 * noise.standard_normal()}
                    | {"robust_error": 0.105 + worse + 1e-4 * noise.standard_normal()}
                )
    return pl.DataFrame(rows).with_columns(**what)


def figure2() -> Specimen:
    error = pl.col("robust_error")
    noise = pl.Series(np.random.default_rng(2).normal(0.12, 0.005, curve_table().height))
    return Specimen(
        table=curve_table(),
        measured=(*ERRORS, "loss"),
        chance=COIN,
        controls={
            "harmful overfitting": Null(curve_table(clean_error=pl.lit(0.15)), ("5Eb",)),
            "an error below the noise rate": Null(curve_table(clean_error=pl.lit(0.05)), ("5Eb",)),
            "no effect of any setting": Null(curve_table(robust_error=pl.lit(0.11)),
                                             ("3b", "3c", "3d")),
            "noise": Null(curve_table(robust_error=pl.lit(noise)), ("3b", "3c", "3d")),
            "an error that stays": Null(curve_table(robust_error=error + 0.04), ("3a",)),
        },
    )  # fmt: skip


def ratio_table(sign=1, **what) -> pl.DataFrame:
    """Robust errors whose contours fall in d (rise, with sign = -1)."""
    rows = [
        {"seed": seed, "mu_norm": 5.0, "d": d, "ratio": ratio, "beta": 0.1, "n": 100}
        | {"tested": 2000, "train_error": 0.0}
        | {"robust_error": 0.11 + ratio * (1.15 + 0.002 * seed) * (1 + sign * (d / 6000 - 0.5))}
        for seed in range(6)
        for d in (500, 1000, 2000, 3000, 4500, 6000)
        for ratio in fig3._RATIOS
    ]
    return pl.DataFrame(rows).with_columns(**{name: pl.lit(v) for name, v in what.items()})


def figure3() -> Specimen:
    return Specimen(
        table=ratio_table(),
        measured=("robust_error", "train_error"),
        chance=COIN,
        controls={
            "contours that rise": Null(ratio_table(sign=-1), ("18",)),
            "contours that are level": Null(ratio_table(sign=0), ("18",)),
            "a point that is not fitted": Null(ratio_table(train_error=0.02), ("5E",)),
            "flips that the network knows": Null(ratio_table(robust_error=0.05), ("6E",)),
        },
    )


def map4(clean: float, robust: float, rising: bool = True) -> pl.DataFrame:
    """Accuracies that cross 0.8 at d = (||mu||/0.05)^p, with an exponent p of each kind."""
    rng, rows = np.random.default_rng(0), []
    lengths, dims = np.geomspace(0.05, 3.2, 25), (25, 100, 289, 784)
    for mu, d, seed in product(lengths, dims, range(10)):
        row = {"mu_norm": mu, "d": d, "seed": seed, "source": "mnist"}
        for name, power in (("clean_accuracy", clean), ("robust_accuracy", robust)):
            far = np.log(mu / 0.05) - np.log(d) / power + 0.01 * rng.standard_normal()
            accuracy = 0.5 + 0.5 / (1 + np.exp(-4 * far) * 2 / 3)
            row[name] = accuracy if rising else 1.5 - accuracy
        rows.append(row)
    return pl.DataFrame(rows)


def figure4() -> Specimen:
    return Specimen(
        table=map4(clean=4, robust=2),
        measured=("clean_accuracy", "robust_accuracy"),
        chance={"clean_accuracy": 0.5, "robust_accuracy": 0.5},
        perfect={"clean_accuracy": 1.0, "robust_accuracy": 1.0},
        controls={
            "third power": Null(map4(clean=3, robust=3), ("c", "d", "e")),
            "the other way round": Null(map4(clean=2, robust=4), ("c", "d", "e")),
            "accuracies that fall": Null(map4(clean=4, robust=2, rising=False), ("a", "b")),
        },
    )


def map5(slope: float, noise: float = 0.002) -> pl.DataFrame:
    """Accuracies that cross 0.75 at the ratio 0.25 + slope log10(d/140)."""
    rng, rows = np.random.default_rng(0), []
    for side, ratio, seed in product((5, 7, 10, 14, 20, 28), fig5.RATIOS, range(5)):
        contour = 0.25 + slope * np.log10(side**2 / 140) + noise * rng.standard_normal()
        accuracy = 0.5 + 0.5 / (1 + np.exp((ratio - contour) / 0.04))
        row = {"d": side**2, "ratio": ratio, "seed": seed, "source": "mnist"}
        rows.append({**row, "robust_accuracy": accuracy})
    return pl.DataFrame(rows)


def figure5() -> Specimen:
    return Specimen(
        table=map5(-0.05),
        measured=("robust_accuracy",),
        chance={"robust_accuracy": 0.5},
        perfect={"robust_accuracy": 1.0},
        controls={
            "contours that rise": Null(map5(0.05), ("18",)),
            "level contours and noise": Null(map5(0.0, 0.01), ("18",)),
        },
    )


def curves6(loss: float = 0.005, error: float = 0.01, **worse: float) -> pl.DataFrame:
    """Runs that end with this loss and error; `worse` are those of one decisive setting."""
    rng, rows = np.random.default_rng(0), []
    settings = dict.fromkeys(one for column in fig6.COLUMNS.values() for one in column)
    for (mu, side, ratio), seed, step in product(settings, range(15), (10, 1000)):
        end = {"loss": loss, "robust_error": error}
        if (mu, side, ratio) == (5.0, 32, 0.1):
            end |= worse
        if mu < 5 or ratio > 0.1 or step < 1000:  # not what the claims are about
            end = {"loss": 0.5, "robust_error": 0.5}
        noisy = {name: value * (1 + 0.05 * rng.standard_normal()) for name, value in end.items()}
        row = {"mu_norm": mu, "d": side**2, "ratio": ratio, "seed": seed, "step": step}
        rows.append({**row, "steps": 1000, "source": "mnist", **noisy})
    return pl.DataFrame(rows)


def figure6() -> Specimen:
    return Specimen(
        table=curves6(),
        measured=("loss", "robust_error"),
        chance={"robust_error": 0.5},
        controls={
            "a loss that stays": Null(curves6(loss=0.02), ("19a",)),
            "an error that stays in one setting": Null(curves6(robust_error=0.05), ("19b",)),
        },
    )


POWERS = {("both", "clean"): 3.7, ("first", "clean"): 4.05, ("both", "robust"): 3.1,
          ("first", "robust"): 3.4}  # fmt: skip


def power_table(drift: float = 0.1, apart: float = 1.0, robust: float = 0.0) -> pl.DataFrame:
    """Maps with exponents by steps and layers: `drift` per number of steps, `apart` times the
    difference of the layers, and another exponent for all robust maps if given."""
    rows = []
    dims, steps = (1000, 3000, 8000, 18000), (50, 200, 500)
    for layers, d, factor, seed in product(exponents.LAYERS, dims, exponents.FACTORS, range(6)):
        mu = exponents._length(factor, d)
        for index, step in enumerate(steps):
            row = {"layers": layers, "d": d, "mu_norm": mu, "seed": seed, "step": step}
            for kind, name in exponents.KINDS.items():
                base = POWERS["both", kind]
                p = base + apart * (POWERS[layers, kind] - base) + drift * index + 0.005 * seed
                p = robust if robust and kind == "robust" else p
                row[name] = 0.1 + 0.4 * np.exp(-1.4 * (mu / 2.9) ** p * 1000 / d)
            rows.append(row)
    return pl.DataFrame(rows)


def exponents_of_figure1() -> Specimen:
    return Specimen(
        table=power_table(),
        measured=("clean_error", "robust_error"),
        chance=COIN,
        controls={
            "no drift": Null(power_table(drift=0.0), ("clean_steps", "robust_steps")),
            "no effect of the layers": Null(power_table(apart=0.0),
                                            ("clean_layers", "robust_layers")),
            "the paper's square": Null(power_table(robust=2.0), ("robust_square",)),
            "a drift away from 4": Null(power_table(drift=0.5), ("clean_fourth",)),
        },
    )  # fmt: skip


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "benign/lemmas": lemmas,
    "benign/theory_regime": regime,
    "benign/scaling_law": scaling,
    "benign/other_clusters": clusters,
    "benign/appendix_bounds": appendix,
    "benign/fig1": figure1,
    "benign/exponents": exponents_of_figure1,
    "benign/fig2": figure2,
    "benign/fig3": figure3,
    "benign/fig4": figure4,
    "benign/fig5": figure5,
    "benign/fig6": figure6,
}
