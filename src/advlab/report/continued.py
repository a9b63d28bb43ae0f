"""Claims that go on with the one before: "and less than 0.05 at 1.5 tau" is read after it.

The verdicts of a result stand in the order of its claims, so those before a claim tell what it
continues.
"""

import re
from collections.abc import Sequence

from .verdict import Verdict

_GOES_ON = re.compile(
    r"(?:and|or|nor|but|so|as|also|though|while|which|that|then|there|it|its|they|their|is|more|"
    r"less|fewer|(?:(?:for|in) )?(?:this|these|those))\b"
)
_BESIDE = re.compile(r"without\b|with\b")
_VERB = re.compile(
    r"\b(?:is|are|has|have|holds?|ends?|falls?|rises?|grows?|stays?|comes?|reach(?:es)?|covers?|"
    r"projects?|shrinks?)\b"
)
"""What makes a sentence of words that begin with "with"."""


def continued(verdicts: Sequence[Verdict]) -> list[tuple[Verdict, ...]]:
    """For each verdict those that its words continue, from one that can be read alone.

    Args:
        verdicts: of one result, in its order.

    Example:
        from advlab.report.continued import continued
        continued(result.verdicts)[1]  # those before "and less than 0.05 at 1.5 tau"
    """
    found: list[tuple[Verdict, ...]] = []
    for place, verdict in enumerate(verdicts):
        goes_on = place > 0 and _continues(verdict.claim)
        found.append((*found[-1], verdicts[place - 1]) if goes_on else ())
    return found


def in_brackets(before: Sequence[Verdict]) -> str:
    """The claims that one continues, to stand behind it in a line; empty if it continues none.

    Args:
        before: what `continued` found.
    """
    claims = "; ".join(f"{one.id}: {one.claim}" for one in before)
    return f" [continues {claims}]" if claims else ""


def _continues(claim: str) -> bool:
    beside = _BESIDE.match(claim) and not _VERB.search(claim)
    return bool(beside or _GOES_ON.match(claim))
