"""Specimens of cgro, the experiments whose tables have one value per row and quantity."""

from collections.abc import Callable

import numpy as np
import polars as pl
from nulls import Null, Specimen

from advlab.papers.cgro.experiments import explicit_classifier, exponential_lower_bound
from advlab.papers.cgro.experiments._parts import other_attacks_runs

K = np.arange(1, 11)
SLOPE = {"l2 products, own squares": 120.0, "l2 free, own squares": 120.0, "l2 products": 1.0,
         "l2 free": 1.0, "linf products": 6.0, "linf free": 6.0}  # fmt: skip
SCALARS = {"GTA closed form": 1e-16, "GTA length": 1e-15, "GTA noise": 0.0, "gradient": 1e-11,
           "smallest step of u": 0.0, "decomposition": 1e-13, "PGD train at 0.2": 0.0,
           "fake signal train": 0.1, "PGD train": 1.0}  # fmt: skip


def other_attacks_table(
    train: float = 0.09, test: float = 0.08, clean: float = 0.32, fitted: float = 1.0, **changed
) -> pl.DataFrame:
    """Twenty seeds; radii spread by 4 % around their medians."""
    rows = []
    for lam in (0.5, 0.0):
        for seed in range(20):
            jitter = 1 + 0.002 * np.sin(seed)
            rows += [(lam, seed, name, 0.0, value) for name, value in (SCALARS | changed).items()]
            own = {"train": train, "test": test}
            radii = own if lam else {"train": fitted * clean, "test": clean}
            for name, radius in radii.items():
                spread = {"median": 1.0, "first tenth": 0.96, "last tenth": 1.04}
                rows += [
                    (lam, seed, f"{at} {name}", 0.0, jitter * radius * factor)
                    for at, factor in spread.items()
                ]
    schema = {"lam": pl.Float64, **other_attacks_runs.SCHEMA}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(d=1000, n=20, eta=0.02)


def other_attacks() -> Specimen:
    bugs = {
        "a surrogate of another length": ({"GTA closed form": 1e-3, "GTA length": 1e-3},
                                          ("1a", "1b")),
        "noise patches move": ({"GTA noise": 1e-3}, ("1c",)),
        "noise term without y_i": ({"gradient": 1e-2}, ("2a",)),
        "a gradient of the wrong sign": ({"smallest step of u": -1e-6}, ("2b",)),
        "a patch is left out": ({"decomposition": 1e-2}, ("3",)),
    }  # fmt: skip
    controls = {
        "PGD is withstood": ({"PGD train at 0.2": 0.9}, ("12",)),
        "a fake signal is withstood": ({"fake signal train": 0.9}, ("12b",)),
        "no window": ({"train": 0.08}, ("12c",)),
        "clean training fits too": ({"fitted": 1.125}, ("12d",)),
        "as after clean training": ({"train": 0.32, "test": 0.32}, ("12c", "12e")),
    }
    return Specimen(
        table=other_attacks_table(),
        measured=("value",),
        controls={n: Null(other_attacks_table(**c), ids) for n, (c, ids) in controls.items()},
        bugs={n: Null(other_attacks_table(**c), ids) for n, (c, ids) in bugs.items()},
    )


def blocks(**changes) -> list[tuple]:
    values = {
        "square error": 2.0 ** (-2 * K - 2),
        "square undershoot": 0.0 * K,
        "square parameters": 20.0 * K - 7,
        "product error": 9.0 * 2.0 ** (-2 * K - 2),
        "product on axes": 0.0 * K,
    } | changes
    return [
        (0, name, "", 0, 0, float(k), float(value))
        for name, column in values.items()
        for k, value in zip(K, column, strict=True)
    ]


def classifiers(bend: float = 0.0, slope: dict | None = None, **changes: float) -> list[tuple]:
    shares = {"clean train": 0.0, "clean test": 0.0, "robust train": 0.0, "robust test": 1.0,
              "robust test of the clean classifier": 1.0} | changes  # fmt: skip
    rows = []
    for d in explicit_classifier.DIMENSIONS:
        for n in explicit_classifier.SIZES:
            for seed in range(3):
                for name, rate in (SLOPE | (slope or {})).items():
                    size = 50 * d + n * (rate * d + 9) + bend * n**2
                    values = {"parameters": size, **shares}
                    rows += [(seed, key, name, n, d, 0.0, value) for key, value in values.items()]
                rows.append((seed, "disagreements", "l2", n, d, 0.0, shares.get("apart", 0.0)))
    return rows


def depths(extra: int = 0, fits: float = 0.5, misses: float = 2.0) -> list[tuple]:
    rows = []
    for d in explicit_classifier.DIMENSIONS:
        least = float(explicit_classifier.predicted_depth(d) + extra)
        rows.append((0, "least depth", "", 0, d, 0.0, least))
        rows.append((0, "error at least depth", "", 0, d, 4.0, fits))
        rows.append((0, "error one below", "", 0, d, 3.0, misses))
    return rows


def steep(pgd: float = 0.4) -> list[tuple]:
    """Nine seeds of two networks; PGD finds what it finds, transfer all."""
    found = {"robust test by PGD": pgd, "robust test by transfer": 1.0, "robust test": 1.0,
             "robust test of the clean classifier": 1.0}  # fmt: skip
    return [
        (seed, key, f"{name}, steep", 30, d, 0.0, value * (1 - 0.01 * (seed % 2) * (value < 1)))
        for d in explicit_classifier.DIMENSIONS
        for name in ("l2 free", "linf free")
        for seed in range(9)
        for key, value in found.items()
    ]


def explicit_table(first=None, second=None, third=None, fourth=None) -> pl.DataFrame:
    parts = (first or blocks(), second or classifiers(), third or depths(), fourth or steep())
    rows = [row for part in parts for row in part]
    return pl.DataFrame(rows, schema=explicit_classifier.SCHEMA, orient="row")


FALSE_CLASSIFIER = {
    "14a": explicit_table(blocks(**{"square error": 2.0 ** (-2 * K - 1)})),
    "14b": explicit_table(blocks(**{"square undershoot": -1e-6 + 0 * K})),
    "14c": explicit_table(blocks(**{"square parameters": 20.0 * K - 6})),
    "14d": explicit_table(blocks(**{"product error": 13.5 * 2.0 ** (-2 * K - 2)})),
    "14e": explicit_table(blocks(**{"product on axes": 1e-3 + 0 * K})),
    "15a": explicit_table(None, classifiers(**{"clean test": 0.01})),
    "15b": explicit_table(None, classifiers(**{"robust train": 0.01})),
    "15c": explicit_table(None, classifiers(**{"robust test": 0.9})),
    "15d": explicit_table(None, None, depths(extra=1)),
    "15e": explicit_table(None, None, depths(fits=1.2)),
    "15f": explicit_table(None, None, None, steep(pgd=0.95)),
    "16a": explicit_table(None, classifiers(bend=0.1)),
    "16b": explicit_table(None, classifiers(slope={"l2 free": 2.0})),
    "16c": explicit_table(None, classifiers(apart=1.0)),
}


def explicit() -> Specimen:
    bugs = {f"planted, {id}": Null(table, (id,)) for id, table in FALSE_CLASSIFIER.items()}
    masked = bugs.pop("planted, 15f")
    return Specimen(
        table=explicit_table(), measured=("value",), bugs=bugs,
        controls={"PGD finds all": masked},
    )  # fmt: skip


def lower(uses=0.0, sharp=0.0, gap=0.01, exact=0.02, power=0.25, sign=1.0) -> pl.DataFrame:
    rows = [
        (0, f"{form} violations", lemma, 0.0, value if lemma == "A.2" else 0.0)
        for form, value in (("paper", uses), ("sharp", sharp))
        for lemma in ("A.1", "A.2", "A.3")
    ]
    for mu in exponential_lower_bound.MU:
        share = {"paper": 0.3 - mu, "entropy": 0.3 - mu + gap,
                 "exact, n = 100": 0.3 - mu + gap + exact}  # fmt: skip
        rows += [(0, "share", kind, mu, value) for kind, value in share.items()]
    for d in range(4, 41, 4):
        # The side of the packing is 6 at delta = 0.1.
        rows.append((0, "parameters", "0.1", float(d), sign * power * np.log10(6) * d))
    return pl.DataFrame(rows, schema=exponential_lower_bound.SCHEMA, orient="row")


FALSE_BOUND = {
    "13a": lower(uses=1.0),
    "13b": lower(sharp=2.0),
    "17a": lower(gap=-0.01),
    "17b": lower(exact=-0.02),
    "17d": lower(power=1 / 3),
}


def bound() -> Specimen:
    falling = {"M_D falls": Null(lower(sign=-1.0), ("17c", "17d"))}
    powers = {f"n^{p:.2f}": Null(lower(power=p), ("17d",)) for p in (0.2, 1 / 3, 0.5)}
    planted = {f"planted, {id}": Null(table, (id,)) for id, table in FALSE_BOUND.items()}
    return Specimen(table=lower(), measured=("value",), bugs=planted | falling | powers)


def flatness_table(**changed: float) -> pl.DataFrame:
    values = {"lower": 0.2, "rise": 0.25, "upper": 0.3, "deviations": 2.0} | changed
    rows = [
        {"model": model, "norm": norm, "D": D, "seed": seed, "step": 1, "steps": 1, "delta": 0.5}
        | values
        for model in ("linear", "network")
        for norm in ("l2", "linf")
        for D in (2, 5, 20)
        for seed in range(10)
    ]
    return pl.DataFrame(rows)


def flatness() -> Specimen:
    one = pl.arange(pl.len()) == 7

    def once(**changed: float) -> pl.DataFrame:
        """One look with the bug in it."""
        table = flatness_table()
        return table.with_columns(
            pl.when(one).then(value).otherwise(name).alias(name) for name, value in changed.items()
        )

    return Specimen(
        table=flatness_table(),
        measured=("lower", "rise", "upper", "deviations"),
        bugs={
            "an attack that stays at the input": Null(once(rise=0.0), ("21a",)),
            "the slope at the input for G": Null(flatness_table(upper=0.2), ("21b",)),
            "delta^2 G": Null(flatness_table(upper=0.15), ("21b",)),
            "a term is left out": Null(once(deviations=-3.5), ("21c",)),
        },
    )


BOUNDS: dict[str, Callable[[], Specimen]] = {
    "cgro/other_attacks": other_attacks,
    "cgro/explicit_classifier": explicit,
    "cgro/exponential_lower_bound": bound,
    "cgro/flatness_bound": flatness,
}
