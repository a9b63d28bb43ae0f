"""Null tables: what an experiment would store if there were nothing to find.

A specimen is a table of an experiment in which all its claims hold, with the columns that were
measured. `null_tables` makes nulls of it: coin flips, constants, perfect answers, shuffled rows and
time reversed. Beside them stand the experiment's own controls (the run without the treatment, the
formula without a term) and planted bugs. `faults` says which rules cannot fail.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from advlab.report import Claim, Verdict

SETTINGS = ("seed", "step", "steps", "replicates")
"""Columns that are never measured, in any experiment."""


@dataclass(frozen=True)
class Null:
    """A table that must not pass, and the labels of the claims that it must break."""

    table: pl.DataFrame
    breaks: tuple[str, ...]


@dataclass(frozen=True)
class Specimen:
    """A table in which the claims of an experiment hold, and what must break them.

    Args:
        table: as many replicates as at laptop scale; every claim is supported by it.
        measured: the columns that were measured. The others are settings.
        chance: what coin flips give in some of them (an error of 1/2); others are drawn evenly
            between the smallest and the largest value of the table.
        perfect: what a perfect answer gives in some of them; 0 (or True) in the others.
        controls: the experiment's own controls by name, each with the claims that it must not pass.
        bugs: tables of a run with a planted bug, each with the claims that must notice it.
        reported: claims that are measured and never decided (trends).
        elsewhere: claims that contradict others, such as a lemma as printed beside its correction,
            each with a table in which it holds.
        by: columns that name a run, for time reversed; by default all settings but the step.
    """

    table: pl.DataFrame
    measured: tuple[str, ...]
    chance: Mapping[str, float] = field(default_factory=dict)
    perfect: Mapping[str, float] = field(default_factory=dict)
    controls: Mapping[str, Null] = field(default_factory=dict)
    bugs: Mapping[str, Null] = field(default_factory=dict)
    reported: tuple[str, ...] = ()
    elsewhere: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    by: tuple[str, ...] = ()


def null_tables(specimen: Specimen, seed: int = 0) -> dict[str, pl.DataFrame]:
    """The five nulls that every experiment has."""
    rng = np.random.default_rng(seed)
    return {
        "coin flips": _filled(specimen, lambda name, column: _coin(specimen, name, column, rng)),
        "constant": _filled(specimen, _constant),
        "perfect": _filled(specimen, lambda name, column: _perfect(specimen, name, column)),
        "shuffled": _shuffled(specimen, rng),
        "time reversed": _reversed(specimen),
    }


def outcomes(decide: Callable[[pl.DataFrame], list[Verdict]], table: pl.DataFrame) -> dict:
    """Label to outcome."""
    with np.errstate(all="ignore"):
        return {verdict.id: verdict.outcome for verdict in decide(table)}


def faults(
    specimen: Specimen,
    decide: Callable[[pl.DataFrame], list[Verdict]],
    claims: Mapping[str, Claim],
) -> list[str]:
    """What is wrong with the rules of an experiment, one line each.

    - a claim that its own specimen does not support (then nulls would say nothing);
    - an empirical claim, or one of ours, that coin flips pass;
    - a claim that passes a control or a planted bug that names it;
    - a claim that no null, control or bug breaks;
    - an identity without a planted bug.
    """
    held = outcomes(decide, specimen.table)
    held |= {label: outcomes(decide, table)[label] for label, table in specimen.elsewhere.items()}
    found = [f"{label}: no verdict" for label in claims if label not in held]
    wanted = {label: "undecided" if label in specimen.reported else "supported" for label in claims}
    found += [
        f"{label}: {held[label]} by the table in which it holds"
        for label in claims
        if label in held and held[label] != wanted[label]
    ]
    nulls = {name: outcomes(decide, table) for name, table in null_tables(specimen).items()}
    named = {**specimen.controls, **specimen.bugs}
    found += _unknown(named.values(), claims)
    special = {name: outcomes(decide, null.table) for name, null in named.items()}
    for label, claim in claims.items():
        passes = [name for name, out in nulls.items() if out.get(label) == "supported"]
        if claim.kind in ("empirical", "ours") and "coin flips" in passes:
            found.append(f"{label}: coin flips pass")
        naming = [name for name, null in named.items() if label in null.breaks]
        found += [
            f"{label}: {name} passes" for name in naming if special[name].get(label) == "supported"
        ]
        broken = len(passes) < len(nulls) or naming
        if not broken and label not in specimen.reported:
            found.append(f"{label}: nothing breaks it")
        if claim.kind == "identity" and not any(label in b.breaks for b in specimen.bugs.values()):
            found.append(f"{label}: an identity without a planted bug")
    return found


def _unknown(nulls: Iterable[Null], claims: Mapping[str, Claim]) -> list[str]:
    return [f"{label}: no such claim" for null in nulls for label in null.breaks
            if label not in claims]  # fmt: skip


def _filled(specimen: Specimen, value: Callable[[str, pl.Series], Any]) -> pl.DataFrame:
    table = specimen.table
    new = {name: value(name, table[name]) for name in specimen.measured}
    columns = (
        pl.Series(name, one, dtype=table[name].dtype, strict=False) for name, one in new.items()
    )
    # What was not measured in the first place stays empty.
    return table.with_columns(
        pl.when(pl.col(column.name).is_not_null()).then(column).alias(column.name)
        for column in columns
    )


def _finite(column: pl.Series) -> np.ndarray:
    values = column.drop_nulls().cast(pl.Float64).to_numpy()
    values = values[np.isfinite(values)]
    return values if values.size else np.zeros(1)


def _coin(specimen: Specimen, name: str, column: pl.Series, rng: np.random.Generator) -> Any:
    if column.dtype == pl.Boolean:
        return rng.random(len(column)) < 0.5
    if not column.dtype.is_numeric():
        return column.sample(fraction=1, shuffle=True, seed=int(rng.integers(2**31)))
    if name in specimen.chance:
        drawn = specimen.chance[name] * (1 + 0.005 * rng.normal(size=len(column)))
    else:
        values = _finite(column)
        drawn = rng.uniform(values.min(), values.max(), size=len(column))
    return drawn.round() if column.dtype.is_integer() else drawn


def _constant(name: str, column: pl.Series) -> Any:
    if column.dtype == pl.Boolean or not column.dtype.is_numeric():
        return [column.drop_nulls().mode().sort()[0]] * len(column)
    mean = _finite(column).mean()
    return np.full(len(column), round(mean) if column.dtype.is_integer() else mean)


def _perfect(specimen: Specimen, name: str, column: pl.Series) -> Any:
    if column.dtype == pl.Boolean:
        return np.full(len(column), bool(specimen.perfect.get(name, True)))
    if not column.dtype.is_numeric():
        return column
    return np.full(len(column), specimen.perfect.get(name, 0))


def _shuffled(specimen: Specimen, rng: np.random.Generator) -> pl.DataFrame:
    """Measurements moved together to the settings of other rows."""
    order = rng.permutation(specimen.table.height)
    moved = specimen.table.select(specimen.measured)[order]
    return specimen.table.with_columns(moved)


def _reversed(specimen: Specimen) -> pl.DataFrame:
    """Each run played backwards; without steps, the rows in the other order."""
    table = specimen.table
    if "step" not in table.columns:
        return table.with_columns(pl.col(specimen.measured).reverse())
    settings = [name for name in table.columns if name not in (*specimen.measured, "step")]
    by = list(specimen.by or settings)
    return table.sort("step").with_columns(
        pl.col(specimen.measured).reverse().over(by) if by else pl.col(specimen.measured).reverse()
    )
