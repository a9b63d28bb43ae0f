"""What to attack with: one attack, or a suite of several in turn, cheapest first."""

from collections.abc import Callable
from dataclasses import dataclass

from ..attacks import APGD, ATTACKS, Attack
from ..attacks.autoattack import AutoAttack
from ..core.errors import AdvlabError
from ..core.inputs import Given


@dataclass(frozen=True)
class Plan:
    """Attacks by name in the order in which they are sent, each to what the others left."""

    name: str
    members: dict[str, Attack]
    suite: bool = True
    """Whether it is after the best bound, whoever finds it; a single attack is measured alone."""

    @property
    def draws(self) -> int:
        """Evaluations that its attacks average, for models that are random."""
        return max(getattr(member, "draws", 1) for member in self.members.values())

    def canonical(self) -> str:
        """All settings of all attacks in one line."""
        return "/".join(f"{type(a).__name__} {a.canonical()}" for a in self.members.values())


def _fast() -> dict[str, Attack]:
    """Two short climbs: a first look in a fiftieth of the standard's time."""
    return {
        "APGD cross entropy": APGD(steps=20, climb="cross_entropy", early_exit=True),
        "APGD DLR": APGD(steps=20, climb="dlr", early_exit=True),
    }


SUITES: dict[str, Callable[[], dict[str, Attack]]] = {
    "fast": _fast,
    "standard": AutoAttack("standard").members,
    "plus": AutoAttack("plus").members,
    "rand": AutoAttack("rand").members,
}


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
        return Plan(name, SUITES[name]())
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
