"""What is known of each row, batch by batch."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .evaluation import Effort, counts


@dataclass(frozen=True)
class Find:
    """A row that a check broke: by whom, at which point, with what margin."""

    row: int
    by: str
    margin: float
    point: Tensor


KEPT = 8
"""Broken inputs kept for the picture, of each batch and in all."""
CLEAN, CERTIFIED, LEFT = "clean", "certified", ""


@dataclass(frozen=True)
class Rows:
    """One row an example: margins (positive is wrong), and a word for what became of it.

    `clean` is the margin of the input itself, `worst` the largest that was found, `bound` an upper
    bound of all (infinite where no certificate was had). `points` are the inputs that lost by most,
    of the rows `shown`.
    """

    clean: Float[Tensor, " n"]
    worst: Float[Tensor, " n"]
    bound: Float[Tensor, " n"]
    fate: list[str]
    proof: list[str]
    """The certificate that gave the bound, a row."""
    shown: Int[Tensor, " k"]
    points: Float[Tensor, "k *shape"]
    efforts: list[Effort] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    certifying: float = 0.0
    """Seconds that certificates took."""

    @property
    def wrong(self) -> Tensor:
        return self.clean >= 0

    @property
    def broken(self) -> Tensor:
        return self.wrong | (self.worst >= 0)

    @property
    def uncertain(self) -> Tensor:
        """Neither certified nor right, or certified and yet broken: no proof of robustness."""
        return (self.bound >= 0) | self.broken

    def with_finds(self, finds: Sequence[Find]) -> "Rows":
        """The same with rows that were broken elsewhere."""
        worst, fate = self.worst.clone(), list(self.fate)
        for find in finds:
            worst[find.row], fate[find.row] = find.margin, find.by
        shown = torch.cat([self.shown, torch.tensor([find.row for find in finds]).long()])
        points = torch.cat([self.points, *(find.point[None] for find in finds)])
        keep = worst[shown].sort(descending=True, stable=True).indices[:KEPT]
        return replace(self, worst=worst, fate=fate, shown=shown[keep], points=points[keep])

    def proofs(self) -> dict[str, int]:
        sure = (~self.uncertain).tolist()
        return dict(
            counts([name if safe else "" for name, safe in zip(self.proof, sure, strict=True)])
        )

    def words(self) -> tuple[str, ...]:
        """The fate of each row: who broke it, or that it is certified, or nothing."""
        sure = (~self.uncertain).tolist()
        return tuple(
            CERTIFIED if safe else word for word, safe in zip(self.fate, sure, strict=True)
        )

    def tensors(self) -> dict[str, Tensor]:
        names = ("clean", "worst", "bound", "shown", "points")
        return {name: getattr(self, name) for name in names}

    def notes(self) -> str:
        kept = {"fate": self.fate, "proof": self.proof, "refused": self.refused}
        kept["certifying"] = self.certifying
        return json.dumps({**kept, "efforts": [asdict(effort) for effort in self.efforts]})

    @classmethod
    def read(cls, tensors: dict[str, Tensor], notes: str) -> "Rows":
        about = json.loads(notes)
        efforts = [Effort(**effort) for effort in about.pop("efforts")]
        return cls(**tensors, **about, efforts=efforts)


def joined(parts: Sequence[Rows]) -> Rows:
    """The batches as one, with the worst of their kept points."""
    starts = torch.tensor([0, *(len(part.clean) for part in parts)]).cumsum(0)
    shown = torch.cat([part.shown + start for part, start in zip(parts, starts, strict=False)])
    points = torch.cat([part.points for part in parts])
    worst = torch.cat([part.worst for part in parts])
    keep = worst[shown].sort(descending=True, stable=True).indices[:KEPT]
    return Rows(
        clean=torch.cat([part.clean for part in parts]),
        worst=worst,
        bound=torch.cat([part.bound for part in parts]),
        fate=[word for part in parts for word in part.fate],
        proof=[word for part in parts for word in part.proof],
        shown=shown[keep],
        points=points[keep],
        efforts=[effort for part in parts for effort in part.efforts],
        refused={name: why for part in parts for name, why in part.refused.items()},
        certifying=sum(part.certifying for part in parts),
    )
