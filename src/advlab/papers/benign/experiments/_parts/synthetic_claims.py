"""Claims that every synthetic experiment decides: what was fitted, and what no network can beat.

They are about networks, not averages, so they are exact statements about the networks trained.
"""

import numpy as np
import polars as pl

from .....report import Claims, Verdict
from ...theory import robust_error_lower_bound

PGD_NOTE = "errors under PGD are lower bounds of robust errors"


def with_note(verdicts: list[Verdict]) -> list[Verdict]:
    """The verdicts with a reminder of what an attack can show."""
    return [
        one.model_copy(update={"note": "; ".join(filter(None, (one.note, PGD_NOTE)))})
        for one in verdicts
    ]


def fits_robustly(claims: Claims, label: str, last: pl.DataFrame) -> Verdict:
    """That after training PGD fools the network on no training point (Theorem 3.1, part 1)."""
    fitted = bool((last["train_error"] == 0).all())
    return claims.every(label, fitted, what="of all networks, this")


def is_not_beaten(claims: Claims, label: str, last: pl.DataFrame) -> Verdict:
    """That no robust test error is three standard errors below Theorem 3.2, tight form."""
    bound = _lower_bound(last)
    error = np.sqrt(bound * (1 - bound) / last["tested"].to_numpy())
    gap = (last["robust_error"].to_numpy() - bound) / error
    what = f"smallest (error - bound)/(standard error) of {last.height} networks"
    return claims.above(label, float(gap.min()), -3, what=what)


def _lower_bound(table: pl.DataFrame) -> np.ndarray:
    length, ratio, beta = (table[name].to_numpy() for name in ("mu_norm", "ratio", "beta"))
    return np.asarray(robust_error_lower_bound(length, ratio * length, beta, form="tight"))
