"""What one experiment leaves for the report: chart, verdicts, settings and where they came from."""

from typing import Any

from pydantic import Field

from ..core.config import Config
from .verdict import Verdict


class Failure(Config):
    """A case that has no result, and why."""

    case: dict[str, Any]
    reason: str


class Result(Config):
    """One experiment at one scale, complete enough to be shown without computing anything again."""

    experiment: str
    paper: str
    item: str
    title: str
    about: str
    scale: str
    seeds: int
    cases: int
    failed: list[Failure] = Field(default_factory=list)
    settings: dict[str, Any] = Field(default_factory=dict)
    seconds: float
    versions: dict[str, str] = Field(default_factory=dict)
    commit: str = ""
    finished: str = ""
    verdicts: list[Verdict] = Field(default_factory=list)
    chart: dict[str, Any] = Field(default_factory=dict)

    def name(self, verdict: Verdict) -> str:
        """A verdict's name among all experiments: the experiment's name, then its label."""
        return f"{self.experiment}/{verdict.id}"
