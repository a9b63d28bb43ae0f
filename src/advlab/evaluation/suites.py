"""What to attack with: one attack, or a suite of several in turn, cheapest first."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from torch import Tensor

from ..attacks import APGD, ATTACKS, Attack, HopSkipJump, RayS, Square
from ..attacks._engine.random_models import DRAWS, seeded
from ..attacks.autoattack import AutoAttack
from ..core.errors import AdvlabError
from ..core.inputs import Given
from ..threats import Threat
from .randomness import Randomness


@dataclass(frozen=True)
class Plan:
    """Attacks by name in the order in which they are sent, each to what the others left."""

    name: str
    members: dict[str, Attack]
    suite: bool = True
    """Whether it is after the best bound, whoever finds it; a single attack is measured alone."""
    certificates: tuple[str, ...] | None = None
    """Certificates that are in keeping with its time; None for all."""
    randomness: Randomness | None = None
    """How random the model is; None if it is not."""

    @property
    def draws(self) -> int:
        """Calls by which each point is judged, where the model is random or thought to be so."""
        own = max(getattr(member, "draws", 1) for member in self.members.values())
        return own if self.randomness is None else max(own, DRAWS)

    @property
    def climbing(self) -> int:
        """Calls that are averaged where an attack climbs."""
        return self.draws if self.randomness is None else self.randomness.climbing

    @property
    def uses_gradient(self) -> bool:
        """Whether any of its attacks needs gradients."""
        return any(member.uses_gradient for member in self.members.values())

    def drawing(self, x: Tensor, *name: object) -> AbstractContextManager[None]:
        """Draws that a random model makes from torch's global generators are by name inside.

        Args:
            x: inputs, which say what device the model draws on.
            name: what tells this stream of numbers from all others.
        """
        return nullcontext() if self.randomness is None else seeded(x, *name)

    def canonical(self) -> str:
        """All settings of all attacks in one line."""
        return "/".join(f"{type(a).__name__} {a.canonical()}" for a in self.members.values())


def _fast() -> dict[str, Attack]:
    """Two short climbs: a first look in a fiftieth of the standard's time."""
    return {
        "APGD cross entropy": APGD(steps=20, climb="cross_entropy", early_exit=True),
        "APGD DLR": APGD(steps=20, climb="dlr", early_exit=True),
    }


QUICK = ("linear", "ibp", "lipschitz", "crown_ibp", "smoothing")
"""Certificates whose time grows with the network as that of a few passes through it."""
FEW_QUERIES, QUERIES = 500, 5000
"""Points that an attack without gradients may ask for per example: in `fast`, and elsewhere."""

SUITES: dict[str, Callable[[], dict[str, Attack]]] = {
    "fast": _fast,
    "standard": AutoAttack("standard").members,
    "plus": AutoAttack("plus").members,
    "rand": AutoAttack("rand").members,
}


def without_gradient(ball: Threat, queries: int, *, labels: bool) -> dict[str, Attack]:
    """Attacks by scores or by labels, for models that let no gradient through.

    Args:
        ball: the threat set: RayS is for products of intervals, such as linf balls.
        queries: how many points each may ask for per example.
        labels: whether there are labels only, which Square has nothing to climb in.
    """
    members: dict[str, Attack] = {} if labels else {"Square": Square(queries=queries)}
    several = queries >= QUERIES
    if ball.order > 2:
        members["RayS"] = RayS(queries=queries, restarts=2 if several else 1)
    members["HopSkipJump"] = HopSkipJump(queries=queries, restarts=3 if several else 1)
    return members


def queries_of(suite: str) -> int:
    """Queries per example of an attack without gradients, in a suite of this name."""
    return FEW_QUERIES if suite == "fast" else QUERIES


def plan(attack: Given[Attack | str | None]) -> Plan:
    """The plan of an attack, of a suite's name, or of an attack's name with its own settings."""
    if isinstance(attack, Attack):
        members = getattr(attack, "members", None)
        if members is not None:
            return Plan(title(attack), members())
        return Plan(title(attack), {title(attack): attack}, suite=False)
    name = "standard" if attack is None else attack
    if not isinstance(name, str):
        came = f"the class {name.__name__}" if isinstance(name, type) else f"{name!r:.60}"
        raise AdvlabError("an attack, or the name of one", came, "for example PGD(steps=50)")
    if name in SUITES:
        return Plan(name, SUITES[name](), certificates=QUICK if name == "fast" else None)
    if name in ATTACKS:
        return plan(_made(name))
    known = ", ".join([*SUITES, *ATTACKS.names()])
    raise AdvlabError("the name of a suite or an attack", repr(name), f"there are {known}")


def title(attack: Attack) -> str:
    """An attack's name with the settings that are not its defaults."""
    changed = attack.model_dump(mode="json", exclude_defaults=True)
    inside = ", ".join(f"{name}={value}" for name, value in changed.items())
    return f"{type(attack).__name__}({inside})" if inside else type(attack).__name__


def _made(name: str) -> Attack:
    needed = [key for key, field in ATTACKS[name].model_fields.items() if field.is_required()]
    if needed:
        raise AdvlabError(
            f"an attack that works without settings, {name} needs {', '.join(needed)}",
            name,
            "make it in Python and call advlab.evaluate",
        )
    return ATTACKS[name]()
