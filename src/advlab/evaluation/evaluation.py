"""The answer to "how robust is this model": a bracket, who found what, and the warnings."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..attacks import Attacked, MemberResult
from ..core.display import html_table
from ..core.intervals import CONFIDENCE, clopper_pearson, student


@dataclass(frozen=True)
class CheckWarning:
    """A reason not to take the numbers at their word; docs/attack.md says more of each kind."""

    kind: str
    text: str


@dataclass(frozen=True)
class Example:
    """A broken input beside the original: row in the data, classes and the margin it lost by."""

    row: int
    label: int | tuple[int, ...]
    """A class, a sign of -1 and +1, or 0 and 1 for each of many labels; so are the answers."""
    answer: int | tuple[int, ...]
    wrong_answer: int | tuple[int, ...]
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
    between it and `certified_error`, an upper bound that only some models allow (else None). An
    example counts as an error unless its margin is below zero: ties are errors. Of a random model
    (`draws` above 1) each example counts by the share of fresh draws that are wrong.

    Of a regression there are no errors (all three are None), but mean losses: `clean_loss`,
    `robust_loss`, a LOWER bound of the mean of the largest losses, and `certified_loss`, an upper
    bound where certificates know the model.
    """

    n: int
    clean_error: float | None
    robust_error: float | None
    certified_error: float | None
    attack: str
    threat: str
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    check_warnings: tuple[CheckWarning, ...] = ()
    """What the checks found, each with its kind; `warnings` has the texts alone."""
    members: tuple[MemberResult, ...] = ()
    """One account per attack in the order in which they ran: the look at the clean inputs first,
    attacks of the checks, marked "(check)", last."""
    certificates: dict[str, int] = field(default_factory=dict)
    """How many rows each certificate proved robust."""
    refused: dict[str, str] = field(default_factory=dict)
    """Certificates that do not know this model or threat set, and why."""
    certificates_tried: dict[str, list[float]] = field(default_factory=dict)
    """Per certificate the rows it was given, those it proved robust, and its seconds."""
    budget: float | None = None
    """The seconds that were given, if there was a limit."""
    skipped: dict[str, int] = field(default_factory=dict)
    """What was not done for lack of time: attacks and certificates with the rows they did not
    come to, checks with 0."""
    certifying_seconds: float = 0.0
    seconds: float = 0.0
    batch: int = 0
    seed: int = 0
    draws: int = 1
    """Fresh calls by which each point of a random model was judged: errors are then means over
    them, expectations over the model's draws. 1 where the model is not random."""
    label_changes: float = 0.0
    """The share of examples whose label changes from one call of the model to the next."""
    curves: tuple[Curve, ...] = ()
    examples: tuple[Example, ...] = field(default=(), repr=False)
    adversarial: Attacked | None = field(default=None, repr=False)
    """With `points=True` the inputs at which rows were broken, the clean ones elsewhere."""
    broken_by: tuple[str, ...] = field(default=(), repr=False)
    """Per row "clean" (wrong from the start), the attack that broke it, "certified" or ""."""
    clean_loss: float | None = None
    robust_loss: float | None = None
    certified_loss: float | None = None
    reading: str = ""
    """How the model, its outputs and the labels were taken, where that is not plain."""

    @property
    def warnings(self) -> list[str]:
        """Reasons not to take the numbers at their word, one sentence each."""
        return [warning.text for warning in self.check_warnings]

    def numbers(self) -> dict[str, Any]:
        """Everything but the pictures as plain numbers, lists and words, for JSON."""
        kept = {
            k: v for k, v in asdict(_bare(self)).items() if k not in ("examples", "adversarial")
        }
        return {**kept, "warnings": self.warnings}

    @property
    def measured(self) -> str:
        """What is bracketed: "error", or "loss" of a regression."""
        return "error" if self.clean_error is not None else "loss"

    def _end(self, end: str, gap: str = " ") -> str:
        """One number with its interval, such as the robust error."""
        name = f"{end}_{self.measured}"
        value, ends = getattr(self, name), self.intervals.get(name)
        return f"{value:.4f}" + (f"{gap}{_shown(ends)}" if ends else "")

    def _upper(self) -> str | None:
        if getattr(self, f"certified_{self.measured}") is not None:
            return None
        most = "1" if self.measured == "error" else "any number"
        return f"{most} (no certificate for this model)"

    def __str__(self) -> str:
        what = self.measured
        upper = self._upper() or f"{self._end('certified', '  ')}  by certificate"
        lines = [
            f"{self.n} examples, {self.threat}",
            *([f"read as: {self.reading}"] if self.reading else []),
            f"clean {what:8} {self._end('clean', '  ')}",
            f"robust {what:7} at least {self._end('robust', '  ')}  by {self.attack}"
            f"{self._judged()}",
            f"               at most {upper}",
            *(f"  {_line(member, what)}" for member in self.members),
            *self._proved(),
        ]
        return "\n".join(lines + [f"warning: {warning}" for warning in self.warnings])

    def _repr_html_(self) -> str:
        """What notebooks show."""
        what = self.measured
        rows = {
            "examples": self.n,
            "threat": self.threat,
            **({"read as": self.reading} if self.reading else {}),
            f"clean {what}": self._end("clean"),
            f"robust {what} at least": f"{self._end('robust')} by {self.attack}{self._judged()}",
            f"robust {what} at most": self._upper() or self._end("certified"),
        }
        notes = tuple(f"warning: {warning}" for warning in self.warnings)
        return html_table("Evaluation", rows, notes)

    def _judged(self) -> str:
        return f", in expectation ({self.draws} fresh draws)" if self.draws > 1 else ""

    def _proved(self) -> list[str]:
        lines = [
            f"  {name}: proved {proved:.0f} of {given:.0f} robust in {seconds:.1f} s"
            for name, (given, proved, seconds) in self.certificates_tried.items()
        ]
        if self.skipped:
            left = (
                f"{name} ({rows} rows)" if rows else name for name, rows in self.skipped.items()
            )
            lines.append(f"  skipped for lack of time: {', '.join(left)}")
        return lines


def interval(wrong: Tensor, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """An interval for the share of wrong answers in the population.

    Clopper and Pearson's exact one for one answer per row. Of several draws per row, shape (draws,
    rows), the rows count by their shares: a mean of shares varies no more than one of answers with
    the same mean, so the same formula with broken numbers errs on the safe side. Rows may have
    drawn together, so both ends are moved out by Student's half-width for the mean over draws.

    Args:
        wrong: answers, of shape (rows,) or (draws, rows), or error probabilities of shape (rows,).
        confidence: how often it covers the truth.
    """
    rows = wrong.to(torch.float64)
    if rows.ndim == 1:
        return clopper_pearson(_hits(rows), rows.shape[-1], confidence)
    low, high = clopper_pearson(_hits(rows.mean(0)), rows.shape[1], confidence)
    spread = float(rows.mean(1).std()) if len(rows) > 1 else 0.0
    half = 0.0 if spread == 0 else student(len(rows) - 1, confidence) * spread / len(rows) ** 0.5
    return max(0.0, low - half), min(1.0, high + half)


def _hits(shares: Tensor) -> float | int:
    total = float(shares.sum())
    return round(total) if abs(total - round(total)) < 1e-9 else total


def share(wrong: Tensor) -> float:
    """The share of rows that are true; of draws and rows, the mean over both."""
    return float(wrong.to(torch.float64).mean())


def total(results: Sequence[MemberResult]) -> tuple[MemberResult, ...]:
    """One account per name, in the order in which the names first came."""
    sums: dict[str, MemberResult] = {}
    for one in results:
        sums[one.name] = sums[one.name] + one if one.name in sums else one
    return tuple(sums.values())


def counts(words: Sequence[str]) -> dict[str, int]:
    """How often each word comes, in the order in which they first came; "" is left out."""
    return {word: words.count(word) for word in dict.fromkeys(words) if word}


def _bare(evaluation: Evaluation) -> Evaluation:
    return Evaluation(**{**vars(evaluation), "examples": (), "adversarial": None})


def _line(member: MemberResult, what: str) -> str:
    did = f"broke {member.broken} of" if what == "error" else "climbed for"
    return (
        f"{member.name}: {did} {member.rows} in {member.seconds:.1f} s, "
        f"{member.forwards} rows forward ({member.queries_per_row:.0f} queries per row)"
    )


def _shown(ends: tuple[float, float]) -> str:
    return f"({ends[0]:.4f} to {ends[1]:.4f})"
