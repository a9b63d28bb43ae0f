"""What is known of each row, batch by batch."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..attacks import Attacked, MemberResult
from ..attacks._engine.random_models import error_rate
from ..losses import is_error
from .evaluation import counts


@dataclass(frozen=True)
class Counterexample:
    """A row that a check broke: by which attack, with what margin, at which point."""

    row: int
    by: str
    margin: float
    point: Tensor


KEPT = 8
"""Broken inputs kept for the picture, of each batch and in all."""
CERTIFIED, STANDING = "certified", ""


@dataclass(frozen=True)
class Outcomes:
    """What became of each example: its margins (an error unless below zero), and by whom.

    `clean` is the margin of the input itself, `worst` the largest that was found, `bound` an upper
    bound of all (infinite where no certificate was had). `points` are the inputs that lost by most,
    of the rows `shown`. A random model's margins are means over fresh draws, and a row is an error
    where at least half of them are wrong.
    """

    clean: Float[Tensor, " n"]
    worst: Float[Tensor, " n"]
    bound: Float[Tensor, " n"]
    broken_by: list[str]
    """Per row "clean", the attack that broke it, or "" while it stands."""
    bounded_by: list[str]
    """Per row the certificate that gave the bound."""
    shown: Int[Tensor, " k"]
    points: Float[Tensor, "k *shape"]
    members: list[MemberResult] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    certifying: float = 0.0
    """Seconds that certificates took."""
    tried: dict[str, list[float]] = field(default_factory=dict)
    """Per certificate the rows it was given, those it proved robust, and its seconds."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Per certificate the rows for which there was no time."""
    clean_errors: Bool[Tensor, "draws n"] | None = None
    """Of a random model, which fresh draws are wrong at the clean input, and at the worst found."""
    worst_errors: Bool[Tensor, "draws n"] | None = None

    @property
    def wrong(self) -> Tensor:
        """Errors at the clean input."""
        if self.clean_errors is not None:
            return error_rate(self.clean_errors) >= 0.5
        return is_error(self.clean)

    @property
    def broken(self) -> Tensor:
        """Errors at the clean input or at a point that was found."""
        if self.worst_errors is not None:
            return error_rate(self.worst_errors) >= 0.5
        return self.wrong | is_error(self.worst)

    @property
    def uncertain(self) -> Tensor:
        """Neither certified nor right, or certified and yet broken: no proof of robustness."""
        return is_error(self.bound) | self.broken

    def with_counterexamples(
        self, found: Sequence[Counterexample], all_points: bool = False
    ) -> "Outcomes":
        """The same with rows that checks broke, and the worst of the kept points or all.

        Nothing is added for a random model: to replace the rows that had bad luck in the last
        judgement, and keep those that had good luck, would be no fair judgement.
        """
        if self.worst_errors is not None:
            return self
        worst, by = self.worst.clone(), list(self.broken_by)
        for one in found:
            worst[one.row], by[one.row] = one.margin, one.by
        shown = torch.cat([self.shown, torch.tensor([one.row for one in found]).long()])
        points = torch.cat([self.points, *(one.point[None] for one in found)])
        keep = worst[shown].sort(descending=True, stable=True).indices
        keep = keep if all_points else keep[:KEPT]
        return replace(self, worst=worst, broken_by=by, shown=shown[keep], points=points[keep])

    def take(self, rows: Int[Tensor, " k"]) -> "Outcomes":
        """What became of some rows, without their points; the accounts are those of all."""
        kept = {name: getattr(self, name)[rows] for name in ("clean", "worst", "bound")}
        places = rows.tolist()
        by = {k: [getattr(self, k)[row] for row in places] for k in ("broken_by", "bounded_by")}
        draws = {
            name: None if errors is None else errors[:, rows]
            for name in ("clean_errors", "worst_errors")
            for errors in [getattr(self, name)]
        }
        return replace(self, **kept, **by, **draws, shown=rows[:0], points=self.points[:0])

    def adversarial(self, x: Tensor) -> Attacked:
        """The inputs at which rows were broken, the clean ones elsewhere.

        Args:
            x: the clean inputs; all points must have been kept.
        """
        found = x.clone()
        found[self.shown.to(x.device)] = self.points.to(found)
        return Attacked(found, self.worst.to(x.device), self.broken.to(x.device))

    def cpu(self) -> "Outcomes":
        """The same on the CPU, wherever the model runs: batches read from files are there too."""
        return replace(self, **{name: values.cpu() for name, values in self.tensors().items()})

    def certified_counts(self) -> dict[str, int]:
        """How many rows each certificate proved robust."""
        sure = (~self.uncertain).tolist()
        return dict(
            counts([name if safe else "" for name, safe in zip(self.bounded_by, sure, strict=True)])
        )

    def labels(self) -> tuple[str, ...]:
        """Per row who broke it, "certified", or "" where neither is known."""
        sure = (~self.uncertain).tolist()
        return tuple(
            CERTIFIED if safe else word for word, safe in zip(self.broken_by, sure, strict=True)
        )

    def tensors(self) -> dict[str, Tensor]:
        """What a file keeps as tensors; `notes` is the rest, and `read` takes both."""
        names = ("clean", "worst", "bound", "shown", "points", "clean_errors", "worst_errors")
        return {name: kept for name in names if (kept := getattr(self, name)) is not None}

    def notes(self) -> str:
        names = ("broken_by", "bounded_by", "refused", "certifying", "tried", "skipped")
        kept = {name: getattr(self, name) for name in names}
        return json.dumps({**kept, "members": [asdict(member) for member in self.members]})

    @classmethod
    def read(cls, tensors: dict[str, Tensor], notes: str) -> "Outcomes":
        about = json.loads(notes)
        members = [MemberResult(**member) for member in about.pop("members")]
        return cls(**tensors, **about, members=members)


def concatenate(parts: Sequence[Outcomes], all_points: bool = False) -> Outcomes:
    """The batches as one, with the worst of their kept points, or all of them."""
    starts = torch.tensor([0, *(len(part.clean) for part in parts)]).cumsum(0)
    shown = torch.cat([part.shown + start for part, start in zip(parts, starts, strict=False)])
    points = torch.cat([part.points for part in parts])
    worst = torch.cat([part.worst for part in parts])
    keep = worst[shown].sort(descending=True, stable=True).indices
    keep = keep if all_points else keep[:KEPT]
    return Outcomes(
        clean=torch.cat([part.clean for part in parts]),
        worst=worst,
        bound=torch.cat([part.bound for part in parts]),
        broken_by=[name for part in parts for name in part.broken_by],
        bounded_by=[name for part in parts for name in part.bounded_by],
        shown=shown[keep],
        points=points[keep],
        members=[member for part in parts for member in part.members],
        refused={name: why for part in parts for name, why in part.refused.items()},
        certifying=sum(part.certifying for part in parts),
        tried=_summed([part.tried for part in parts]),
        skipped=dict(sum((Counter(part.skipped) for part in parts), Counter())),
        clean_errors=_beside([part.clean_errors for part in parts]),
        worst_errors=_beside([part.worst_errors for part in parts]),
    )


def _summed(parts: Sequence[dict[str, list[float]]]) -> dict[str, list[float]]:
    names = dict.fromkeys(name for part in parts for name in part)
    found = {name: [part[name] for part in parts if name in part] for name in names}
    return {
        name: [sum(column) for column in zip(*rows, strict=True)] for name, rows in found.items()
    }


def _beside(parts: Sequence[Tensor | None]) -> Tensor | None:
    """The draws of all rows, if there are any."""
    known = [part for part in parts if part is not None]
    return torch.cat(known, 1) if known else None
