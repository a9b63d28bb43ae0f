"""What one experiment leaves for the report: chart, verdicts, settings and where they came from."""

from typing import Any

from ..config import Config
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
    failed: list[Failure] = []
    settings: dict[str, Any] = {}
    seconds: float
    versions: dict[str, str] = {}
    commit: str = ""
    finished: str = ""
    verdicts: list[Verdict] = []
    chart: dict[str, Any] = {}
