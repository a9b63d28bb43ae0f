"""A verdict: one claim, what was measured, whether they agree, and how far that reaches."""

from typing import Any, Literal

from pydantic import Field, NonNegativeInt

from ..core.config import Config

Outcome = Literal["supported", "refuted", "undecided", "outside"]
"""`outside`: the run does not meet the claim's assumptions, so it says nothing about the claim."""

Kind = Literal["identity", "theorem", "empirical", "ours"]
"""What a claim is, and so what its verdict is worth.

- identity: true by algebra or by construction; a verdict tests the code.
- theorem: proved; it can fail by a bug or a wrong proof only.
- empirical: the paper says that it is so; it can go either way.
- ours: a question that the paper does not ask.
"""


class Claim(Config):
    """The words of a claim and what kind it is.

    Args:
        words: what is claimed. "Every" means every, "never" means never.
        kind: identity, theorem, empirical or ours.
        needs: names of assumptions (`Assumption.name`) without which a run is outside the claim.
    """

    words: str
    kind: Kind
    needs: tuple[str, ...] = ()


def identity(words: str, *needs: str) -> Claim:
    """A claim that is true by algebra or by construction: a test of the code."""
    return Claim(words=words, kind="identity", needs=needs)


def theorem(words: str, *needs: str) -> Claim:
    """A claim that is proved, under the assumptions that it needs."""
    return Claim(words=words, kind="theorem", needs=needs)


def empirical(words: str, *needs: str) -> Claim:
    """A claim of a paper that can go either way."""
    return Claim(words=words, kind="empirical", needs=needs)


def ours(words: str, *needs: str) -> Claim:
    """A claim about a question that the paper does not ask."""
    return Claim(words=words, kind="ours", needs=needs)


class Assumption(Config):
    """A condition of a paper, and how well the runs meet it.

    Args:
        name: what claims call it.
        condition: what is asked for, in words.
        reached: the constant or share that the runs reached, if there is one.
        holds: whether that meets the condition; None where nobody can know.
    """

    name: str
    condition: str
    reached: float | None = None
    holds: bool | None = None


class Scope(Config):
    """How far a verdict reaches.

    Args:
        assumptions: the paper's conditions and what was reached of them.
        sizes: settings of the runs (steps, width, seeds, ...), lists where they differ.
        reduced: what is smaller than in the paper; empty if nothing is.
        looks: how many earlier runs of this experiment had been seen when its rules were fixed. The
            deciding run draws from seeds that none of them used.
    """

    assumptions: list[Assumption] = Field(default_factory=list)
    sizes: dict[str, Any] = Field(default_factory=dict)
    reduced: str = ""
    looks: NonNegativeInt = 0


class Verdict(Config):
    """One claim of a paper, the value that decides it with its interval, the rule and the scope."""

    id: str
    claim: str
    kind: Kind = "ours"
    outcome: Outcome
    measured: float | None
    low: float | None = None
    high: float | None = None
    rule: str
    note: str = ""
    scope: Scope = Field(default_factory=Scope)

    @property
    def words(self) -> str:
        """The outcome; "at this size" where the runs are smaller than the paper's."""
        decided = self.outcome in ("supported", "refuted")
        sized = decided and self.scope.reduced and self.kind == "empirical"
        return f"{self.outcome} at this size" if sized else self.outcome
