"""Parameterization 3.1 as the assumptions of an experiment: the worst setting of its table."""

import polars as pl

from .....report import Assumption
from ... import theory
from ...data import Patches
from .patch_runs import FILTERS


def parameterization(table: pl.DataFrame, P: int = 4, m: int = FILTERS) -> list[Assumption]:
    """The conditions of Theorem 4.1 over the settings of a table, each at its worst.

    Args:
        table: with columns d, n, lam and eta; alpha, sigma and gamma are the paper's scaling if
            they are not there. Runs with lam = 0 are controls and do not count.
        P, m: patches and filters.
    """
    names = ["d", "n", "lam", "eta"]
    given = [name for name in ("alpha", "sigma", "gamma") if name in table.columns]
    settings = table.filter(pl.col("lam") > 0).select(*names, *given).unique().sort(names)
    found: dict[str, list[theory.ParameterCondition]] = {}
    for row in settings.iter_rows(named=True):
        law = Patches.scaled(n=row["n"], d=row["d"], P=P)
        scales = {name: row.get(name, getattr(law, name)) for name in ("alpha", "sigma", "gamma")}
        checked = theory.check_parameterization(
            d=row["d"], N=row["n"], P=P, m=m, sigma0=row["d"] ** -0.5, lam=row["lam"],
            eta=row["eta"], **scales,
        )  # fmt: skip
        for name, one in checked.items():
            found.setdefault(name, []).append(one)
    return [_worst(name, each) for name, each in found.items()]


def _worst(name: str, each: list[theory.ParameterCondition]) -> Assumption:
    """Of several settings the one that fails, or else the largest value in size."""
    failing = [one for one in each if one.holds is False]
    shown = max(failing or each, key=lambda one: abs(one.reached))
    if name == "noise":
        shown = min(failing or each, key=lambda one: one.reached)
    return Assumption(name=name, condition=shown.words, reached=shown.reached, holds=shown.holds)
