"""A verdict: one claim, what was measured, and whether they agree."""

from typing import Literal

from ..core.config import Config

Outcome = Literal["supported", "refuted", "undecided"]


class Verdict(Config):
    """One claim of a paper, the value that decides it with its interval, and the rule."""

    id: str
    claim: str
    outcome: Outcome
    measured: float | None
    low: float | None = None
    high: float | None = None
    rule: str
    note: str = ""
