"""What a figure file hands to the lab: its cases, what it is about, and what a case gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, field_validator

from ..core.config import Config
from ..core.errors import AdvlabError
from ..report.verdict import Claim, ours

Scale = Literal["smoke", "laptop", "paper"]


class Case(Config):
    """One setting and one block of replicates, computed together and stored as one run.

    A case carries its own seeds, so its run depends on nothing outside it. More seeds mean more
    blocks: the earlier blocks keep their keys, and their runs stay valid.
    """

    seed: NonNegativeInt = 0
    replicates: PositiveInt = 1

    @property
    def seeds(self) -> range:
        """The seeds of the replicates: seed, ..., seed + replicates - 1."""
        return range(self.seed, self.seed + self.replicates)

    @property
    def cost(self) -> float:
        """How long this case takes next to the others; override it where cases differ much."""
        return 1.0


def blocks(seeds: int, size: int) -> list[dict[str, Any]]:
    """The settings `seed` and `replicates` of the blocks that hold `seeds` replicates.

    blocks(25, 10) holds the seeds 0-9, 10-19 and 20-24. With 40 seeds the first two blocks are the
    same cases as before, so only the rest is computed; a short last block is computed again.

    Args:
        seeds: the number of replicates.
        size: the most replicates in a block.
    """
    if seeds < 1 or size < 1:
        raise AdvlabError("at least one seed and one replicate per block", f"{seeds} and {size}")
    return [
        {"seed": first, "replicates": min(size, seeds - first)} for first in range(0, seeds, size)
    ]


_FEW_SEEDS, _MOST_SEEDS, _MOST_CASES = 1000, 1_000_000, 200_000


def check_seeds(seeds: int, count: Callable[[int], int]) -> None:
    """Refuse what would fill the memory with cases before the first one is computed.

    Args:
        seeds: the number of replicates that somebody asks for.
        count: how many cases a number of seeds makes; it is asked for few of them only.
    """
    if not 1 <= seeds <= _MOST_SEEDS:
        raise AdvlabError(f"at least one seed and at most {_MOST_SEEDS:,}", seeds)
    if seeds > _FEW_SEEDS:
        cases = round(count(_FEW_SEEDS) * seeds / _FEW_SEEDS)
        if cases > _MOST_CASES:
            raise AdvlabError(
                f"seeds for at most {_MOST_CASES:,} cases", f"{seeds:,}, for about {cases:,} cases"
            )


_SEEDS_OF_A_LOOK = 10_000_000


class About(Config):
    """What an experiment reproduces, how long each scale takes, and the claims it decides.

    Args:
        paper: the paper's short name.
        item: the figure, table or section.
        title: what it shows.
        seconds: time on two cores at each scale there is.
        claims: label to claim (`report.theorem("...")` and its like); bare words are our own.
        reduced: what is smaller than in the paper, at each scale where something is.
        data: the data sets ("mnist", "cifar10") that every scale but smoke reads: without them it
            says so before anything is written.
        looks: how many runs of this experiment at laptop scale or above had been seen when its
            rules were fixed. Whoever changes a rule after a look raises it by one: the deciding run
            then draws from seeds that no look has used.
    """

    paper: str
    item: str
    title: str
    seconds: dict[Scale, PositiveFloat]
    claims: dict[str, Claim]
    reduced: dict[Scale, str] = Field(default_factory=dict)
    data: tuple[str, ...] = ()
    looks: NonNegativeInt = 0

    @field_validator("claims", mode="before")
    @classmethod
    def _claims(cls, claims: Any) -> Any:
        if not isinstance(claims, Mapping):
            return claims
        return {
            label: ours(claim) if isinstance(claim, str) else claim
            for label, claim in claims.items()
        }

    def first_seed(self, scale: str) -> int:
        """The first seed of a run that nobody has looked at; 0 at smoke scale."""
        return 0 if scale == "smoke" else self.looks * _SEEDS_OF_A_LOOK


@dataclass(frozen=True)
class Computed:
    """What one case gives: tidy rows, and arrays by name for what does not fit in rows."""

    table: pl.DataFrame
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
