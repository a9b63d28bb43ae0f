"""Claims that every synthetic experiment decides: what was fitted, and what no network can beat.

They are about networks, not averages, so they are exact statements about the networks trained.
"""

import numpy as np
import polars as pl

from .....core.errors import AdvlabError
from .....report import Assumption, Claims, Verdict
from ...theory import robust_error_lower_bound
from . import conditions
from .synthetic_runs import Case

SHORT = 0.03
"""How far below a bound a measured error may be: 4.5 standard errors of 2000 fresh points at an
error of 0.1. A network that saw the flips of the test labels would be 0.1 below."""
STANDS = f"No network's robust test error is more than {SHORT:g} below Theorem 3.2"
PGD_NOTE = "errors under PGD are lower bounds of robust errors"


def with_note(verdicts: list[Verdict]) -> list[Verdict]:
    """The verdicts with a reminder of what an attack can show."""
    return [
        one.model_copy(update={"note": "; ".join(filter(None, (one.note, PGD_NOTE)))})
        for one in verdicts
    ]


def fits_robustly(claims: Claims, label: str, last: pl.DataFrame) -> Verdict:
    """That after training PGD fools the network on no training point (Theorem 3.1, part 1).

    With n points an accuracy above 1 - 1/n is 1.
    """
    least = float(1 - last["train_error"].to_numpy().max())
    what = f"robust training accuracy under PGD, the least of {last.height} networks,"
    return claims.above(label, least, 1 - 1 / int(last["n"].to_numpy().max()), what=what)


def is_not_beaten(claims: Claims, label: str, last: pl.DataFrame) -> Verdict:
    """That no measured robust test error is more than SHORT below Theorem 3.2, tight form."""
    gap = _lower_bound(last) - last["robust_error"].to_numpy()
    what = f"bound less robust error, the largest of {last.height} networks,"
    return claims.below(label, float(gap.max()), SHORT, what=what)


def reached(table: pl.DataFrame) -> list[Assumption]:
    """What figures on the mixture reach of Assumption 1: PyTorch's start, rate 0.1."""
    found = conditions.settings(
        table,
        alpha=pl.col("ratio") * pl.col("mu_norm"),
        omega=(3 * pl.col("d")) ** -0.5,  # the standard deviation of PyTorch's start
        eta=pl.lit(0.1),
    )
    return [*conditions.reached(found), conditions.good_draws(found, start=False)]


def checked(cases: list[Case]) -> list[Case]:
    """The cases of a recipe; refused are those where the paper's question makes no sense."""
    for case in cases:
        check_sizes(case.n, case.d, case.ratio)
    return cases


def check_sizes(n: int, d: int, ratio: float) -> None:
    """Refuse d < n, where nothing is overfitted benignly, and attacks beyond the signal."""
    if d < n:
        raise AdvlabError(f"d of at least n = {n}", d)
    if ratio > 1:
        raise AdvlabError("a ratio alpha/||mu|| of at most 1 (Assumption 1, line (6))", ratio)


def _lower_bound(table: pl.DataFrame) -> np.ndarray:
    length, ratio, beta = (table[name].to_numpy() for name in ("mu_norm", "ratio", "beta"))
    return np.asarray(robust_error_lower_bound(length, ratio * length, beta, form="tight"))
