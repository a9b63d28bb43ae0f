"""Registries: what comes with advlab by name, and what installed packages add to it.

A package declares an entry point, in its pyproject.toml:

    [project.entry-points."advlab.attacks"]
    my_attack = "my_package.attacks:MyAttack"

Then `advlab attack ... --attack my_attack` finds it. Names of ours come first; what is installed is
looked for when a name is not ours, and imported when it is used.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from .errors import AdvlabError

Part = TypeVar("Part")


class Registry(dict[str, Part], Generic[Part]):
    """A dict of parts by name, in which names of installed packages are found too.

    Iteration is over our own names only: what runs by default is never a stranger's.

    Args:
        group: the group of entry points, such as "advlab.attacks".
        kind: the class that an installed part must be, or be a subclass of; None for any function.
        ours: the parts that come with advlab.

    Example:
        from advlab.attacks import PGD, Attack
        from advlab.core.registry import Registry
        ATTACKS = Registry("advlab.attacks", Attack, {"pgd": PGD})
        ATTACKS["theirs"]        # imports it now
    """

    def __init__(self, group: str, kind: type | None, ours: dict[str, Part]):
        super().__init__(ours)
        self.group, self.kind = group, kind

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in installed(self.group)

    def __missing__(self, name: str) -> Part:
        found = installed(self.group)
        if name not in found:
            raise KeyError(name)
        return self._checked(name, loaded(found[name]))

    def names(self) -> list[str]:
        """Our names, then those that installed packages add."""
        return [*self, *(name for name in installed(self.group) if name not in self.keys())]

    def source(self, name: str) -> str | None:
        """Where an installed part is, as module:object; None for ours."""
        found = {} if super().__contains__(name) else installed(self.group)
        return found[name].value if name in found else None

    def _checked(self, name: str, part: Any) -> Any:
        kind = self.kind
        if kind is None and callable(part):
            return part
        if kind is not None and isinstance(part, type) and issubclass(part, kind):
            return part
        wanted = "a function" if kind is None else f"a subclass of {kind.__name__}"
        raise AdvlabError(f"{wanted} at the entry point {name} of {self.group}", f"{part!r:.60}")


def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; of two with one name, the first that is found."""
    found: dict[str, EntryPoint] = {}
    for one in entry_points(group=group):
        found.setdefault(one.name, one)
    return found


def loaded(entry: EntryPoint) -> Any:
    """What an entry point names, or one line that says whose it is and what went wrong."""
    try:
        return entry.load()
    except Exception as error:  # anything may go wrong in a stranger's module
        package = entry.dist.name if entry.dist is not None else "an installed package"
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise AdvlabError(
            f"{entry.name} of {package} can be imported from {entry.value}",
            f"{said:.160}",
            f"repair or uninstall {package}",
        ) from error
