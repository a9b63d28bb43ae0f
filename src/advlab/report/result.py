"""What one experiment leaves for the report: chart, verdicts, settings and where they came from."""

from typing import Any

from pydantic import Field

from ..core.config import Config
from ..core.display import html_table
from ..core.seal import Unsealed, seal, unseal
from .measured import measured, shown
from .verdict import Verdict

FILES = ("figure.svg", "figure.png", "table.csv", "report.html")
"""What a run leaves beside its result to be looked at (`report.leave`)."""


class Failure(Config):
    """A case that has no result, and why."""

    case: dict[str, Any]
    reason: str


class Maker(Config):
    """What computed some runs of a result: versions, commit, code and data of that time.

    `data` are the data files that were read: for each request, such as "mnist train", its files by
    name and their SHA-256.
    """

    versions: dict[str, str]
    commit: str
    code: str
    data: dict[str, dict[str, str]] = Field(default_factory=dict)
    runs: int


class Result(Config):
    """One experiment at one scale, complete enough to be shown without computing anything again.

    `versions`, `machine` and `commit` are of the advlab that decided the claims; `made_by` says
    what computed the runs, which may be older. `seconds` is the time of all runs together, `cpu`
    what of it was computing, `memory` the most bytes that one process held; 0 where not recorded.
    `runs` are the runs it rests on: their keys, and the checksums of their run.json. `source` is
    the name, module or file that was run.
    """

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
    cpu: float = 0.0
    memory: int = 0
    versions: dict[str, str] = Field(default_factory=dict)
    machine: str = ""
    commit: str = ""
    finished: str = ""
    source: str = ""
    runs: dict[str, str] = Field(default_factory=dict)
    made_by: list[Maker] = Field(default_factory=list)
    verdicts: list[Verdict] = Field(default_factory=list)
    chart: dict[str, Any] = Field(default_factory=dict)

    def name(self, verdict: Verdict) -> str:
        """A verdict's name among all experiments: the experiment's name, then its label."""
        return f"{self.experiment}/{verdict.id}"

    def _repr_html_(self) -> str:
        """What notebooks show: a line per verdict."""
        rows = {
            f"{one.id}: {one.claim}": f"{one.words} ({one.kind})"
            + ("" if one.measured is None else f", measured {shown(measured(one))}")
            for one in self.verdicts
        }
        return html_table(f"{self.experiment} ({self.scale}, {self.seeds} seeds)", rows)

    def sealed(self) -> str:
        """The text of its file, with a checksum."""
        return seal(self.model_dump_json(indent=1))

    @classmethod
    def read(cls, data: bytes) -> "Result":
        """The result that a file holds; files from before seals have no checksum.

        Args:
            data: what the file holds.

        Raises:
            ValueError: it is damaged, or no result.
        """
        try:
            return cls.model_validate_json(unseal(data))
        except Unsealed:
            return cls.model_validate_json(data)
