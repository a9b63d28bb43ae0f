"""What the runs of an experiment reach of Assumption 1, and how often its data are a good run.

The theorems want "some large C" in each line of Assumption 1. C >= 10 is asked for here: line (2)
is beta <= 1/C, so that with the paper's own noise rate of 0.1 no larger one can be had.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl
import torch

from .....core.randomness import generators
from .....report import Assumption
from ...data import NoisyMixture
from ...data.mixture import Flips
from ...measures.good_run import good_run
from ...reductions.mixture_law import Start, draw_stack
from ...theory import Assumptions, check_assumptions

ASKED = 10.0
"""The C that a run must reach."""
DELTA = 0.05
"""The probability with which the theorems may fail."""
DRAWS = 20
"""Samples per setting for the share of good runs."""
NAME = "Assumption 1"
LINES = ("1", "2", "5", "A1", "A2", "B1", "B2")
ROUNDING = 1e-9


@dataclass(frozen=True)
class Setting:
    """A setting of the theorems; the arguments of `theory.check_assumptions` but delta."""

    n: int
    d: int
    mu_norm: float
    alpha: float
    beta: float
    omega: float
    eta: float
    width: int

    @property
    def checked(self) -> Assumptions:
        return check_assumptions(**vars(self), delta=DELTA)

    @property
    def C(self) -> float:
        """The largest C of all lines but (4), the step size; for smooth and other activations."""
        return min(self.checked.implied[line] for line in LINES)

    @property
    def inside(self) -> bool:
        """Whether C is large enough and lines (3) and (6), which have no C, hold."""
        return self.C >= ASKED * (1 - ROUNDING) and all(self.checked.holds.values())


def setting(row: Mapping[str, Any]) -> Setting:
    """That of a run, from its row."""
    return Setting(**{name: row[name] for name in Setting.__dataclass_fields__})


def settings(table: pl.DataFrame, **columns: pl.Expr) -> list[Setting]:
    """The different settings of a table.

    Args:
        table: a row per run or more.
        columns: those fields of `Setting` that are no column of it.
    """
    names = Setting.__dataclass_fields__
    rows = table.with_columns(**columns).select(*names).unique(maintain_order=True)
    return [setting(row) for row in rows.iter_rows(named=True)]


def reached(found: Iterable[Setting]) -> list[Assumption]:
    """Assumption 1 without its step size, and the step size: the least C over the settings."""
    found = list(found)
    broken = sorted({
        f"({line})" for one in found for line, holds in one.checked.holds.items() if not holds
    })  # fmt: skip
    extra = f"; {' and '.join(broken)} not met" if broken else "; (3) and (6) met"
    slow = min(one.checked.implied["4"] for one in found)
    return [
        Assumption(
            name=NAME,
            condition=f"C >= {ASKED:g} in lines (1), (2), (5), (A1)-(B2), with (3) and (6){extra}",
            reached=min(one.C for one in found),
            holds=all(one.inside for one in found),
        ),
        Assumption(
            name="step size",
            condition=f"line (4), eta <= 1/(C d^2) with C >= {ASKED:g}, in every run",
            reached=slow,
            holds=slow >= ASKED * (1 - ROUNDING),
        ),
    ]


def good_draws(
    found: Iterable[Setting], start: bool = True, flips: Flips = "independent"
) -> Assumption:
    """In how many draws of the data (and the start) the events of a good run hold.

    Args:
        found: the settings; the worst one is reported.
        start: whether the start is that of Algorithm 1, so that Lemma B.3 speaks of it.
        flips: how labels are flipped.
    """
    share = min(_good_share(one, start, flips) for one in found)
    lemmas = "Lemmas B.3, B.4 and B.19" if start else "Lemma B.4"
    return Assumption(
        name="good run",
        condition=f"the events of {lemmas} in {100 * (1 - DELTA):g} % of draws",
        reached=share,
        holds=share >= 1 - DELTA,
    )


@cache
def _good_share(one: Setting, start: bool, flips: Flips) -> float:
    data = NoisyMixture(n=one.n, d=one.d, mu_norm=one.mu_norm, beta=one.beta, flips=flips)
    width = one.width if start else 2
    drawn = draw_stack(
        data,
        Start(width=width, activation="relu", omega=one.omega),
        generators("good run", seeds=range(DRAWS)),
        tested=1,
    )
    run = good_run(
        drawn.train,
        drawn.model.get_parameter("weight").detach(),
        d=one.d,
        kappa=min(data.kappa, 1.0),
        delta=DELTA,
        alpha=one.alpha,
        beta=one.beta,
        omega=one.omega,
    )
    if start:
        return float(run.holds.double().mean())
    labels = {event.label for event in run.events} - {"start", "G"}
    return float(torch.stack([run.of(label) for label in labels]).all(0).double().mean())
