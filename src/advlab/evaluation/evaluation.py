"""The answer to "how robust is this model": a bracket, who found what, and the doubts."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..core.intervals import clopper_pearson


@dataclass(frozen=True)
class Doubt:
    """A reason not to take the numbers at their word; docs/attack.md says more of each kind."""

    kind: str
    text: str


@dataclass(frozen=True)
class Effort:
    """What one attack was given, what it broke, and what that took.

    `forwards` and `backwards` count the rows that went through the model each way; None where the
    model cannot be watched.
    """

    name: str
    tried: int
    broken: int
    seconds: float
    forwards: int | None = None
    backwards: int | None = None

    def __add__(self, other: "Effort") -> "Effort":
        return Effort(
            self.name,
            self.tried + other.tried,
            self.broken + other.broken,
            self.seconds + other.seconds,
            _sum(self.forwards, other.forwards),
            _sum(self.backwards, other.backwards),
        )


@dataclass(frozen=True)
class Example:
    """A broken input beside the original: row in the data, classes and the margin it lost by."""

    row: int
    label: int
    answer: int
    wrong_answer: int
    margin: float
    original: Tensor
    perturbed: Tensor


@dataclass(frozen=True)
class Curve:
    """Errors of one quick attack on some rows while one thing is turned up: they must not fall."""

    over: str
    rows: int
    attack: str
    values: tuple[float, ...]
    errors: tuple[float, ...]


@dataclass(frozen=True)
class Evaluation:
    """Errors over n examples, each with an interval for the population they were drawn from.

    `robust_error` counts what the attacks broke: a LOWER bound of the robust error. The truth lies
    between it and `certified_error`, an upper bound that only some models allow (else None).
    """

    n: int
    clean_error: float
    robust_error: float
    certified_error: float | None
    attack: str
    threat: str
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()
    efforts: tuple[Effort, ...] = ()
    certificates: dict[str, int] = field(default_factory=dict)
    """How many rows each certificate proved robust."""
    refused: dict[str, str] = field(default_factory=dict)
    """Certificates that do not know this model or threat set, and why."""
    certifying_seconds: float = 0.0
    seconds: float = 0.0
    batch: int = 0
    seed: int = 0
    curves: tuple[Curve, ...] = ()
    examples: tuple[Example, ...] = field(default=(), repr=False)
    broken_by: tuple[str, ...] = field(default=(), repr=False)
    """A word a row: "clean" (wrong from the start), the attack that broke it, "certified" or ""."""

    @property
    def warnings(self) -> list[str]:
        return [doubt.text for doubt in self.doubts]

    def numbers(self) -> dict[str, Any]:
        """Everything but the pictures as plain numbers, lists and words, for JSON."""
        kept = {k: v for k, v in asdict(_bare(self)).items() if k != "examples"}
        return {**kept, "warnings": self.warnings}

    def __str__(self) -> str:
        upper = "1 (no certificate for this model)"
        if self.certified_error is not None:
            ends = _shown(self.intervals["certified_error"])
            upper = f"{self.certified_error:.4f}  {ends}  by certificate"
        lines = [
            f"{self.n} examples, {self.threat}",
            f"clean error    {self.clean_error:.4f}  {_shown(self.intervals['clean_error'])}",
            f"robust error   at least {self.robust_error:.4f}  "
            f"{_shown(self.intervals['robust_error'])}  by {self.attack}",
            f"               at most {upper}",
            *(f"  {_line(effort)}" for effort in self.efforts),
            *self._proved(),
        ]
        return "\n".join(lines + [f"warning: {warning}" for warning in self.warnings])

    def _proved(self) -> list[str]:
        if not self.certificates:
            return []
        proved = ", ".join(f"{name} {count}" for name, count in self.certificates.items())
        return [f"  certificates: proved {proved} in {self.certifying_seconds:.1f} s"]


def interval(wrong: Tensor) -> tuple[float, float]:
    """Clopper and Pearson's exact interval for the share of wrong answers."""
    return clopper_pearson(int(wrong.sum()), len(wrong))


def share(wrong: Tensor) -> float:
    return float(wrong.to(torch.float64).mean())


def total(efforts: Sequence[Effort]) -> tuple[Effort, ...]:
    """One effort a name, in the order in which the names first came."""
    sums: dict[str, Effort] = {}
    for effort in efforts:
        sums[effort.name] = sums[effort.name] + effort if effort.name in sums else effort
    return tuple(sums.values())


def counts(words: Sequence[str]) -> dict[str, int]:
    return {word: words.count(word) for word in dict.fromkeys(words) if word}


def _bare(evaluation: Evaluation) -> Evaluation:
    return Evaluation(**{**vars(evaluation), "examples": ()})


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _line(effort: Effort) -> str:
    work = "" if effort.forwards is None else f", {effort.forwards} rows forward"
    return f"{effort.name}: broke {effort.broken} of {effort.tried} in {effort.seconds:.1f} s{work}"


def _shown(ends: tuple[float, float]) -> str:
    return f"({ends[0]:.4f} to {ends[1]:.4f})"
