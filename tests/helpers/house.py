"""The package read as text: which module imports which name from where, and who reaches what."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import advlab

ROOT = Path(advlab.__file__).parent


def module_of(path: Path) -> str:
    parts = ("advlab", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES: dict[str, Path] = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}
PACKAGES = {module for module, path in FILES.items() if path.name == "__init__.py"}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text())


def room(module: str) -> str:
    """The first folder below the package; each paper is a room of its own."""
    parts = module.split(".")[1:] or ["advlab"]
    return "/".join(parts[:2]) if parts[0] == "papers" and len(parts) > 1 else parts[0]


def imports(module: str) -> Iterator[tuple[str, str]]:
    """(module, name) of every import in a file, wherever it stands; the name may be a module."""
    package = module.split(".") if module in PACKAGES else module.split(".")[:-1]
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((source, alias.name) for alias in node.names)


@cache
def defined_in(module: str, name: str) -> str:
    """The module that defines a name, found through the re-exports of packages."""
    if f"{module}.{name}" in FILES:
        return f"{module}.{name}"
    if module in PACKAGES:
        for source, exported in imports(module):
            if exported == name and source in FILES:
                return defined_in(source, name)
    return module


def _attributes(module: str, bound: str) -> set[str]:
    return {
        node.attr
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == bound
    }


@cache
def uses(module: str) -> frozenset[str]:
    """The modules whose definitions a module names; `package.name` counts as the name's module."""
    found = set()
    for source, name in imports(module):
        if source not in FILES:
            continue
        target = defined_in(source, name) if name else source
        found.add(target)
        if target in PACKAGES and target != source:
            found |= {defined_in(target, attribute) for attribute in _attributes(module, name)}
    return frozenset(one for one in found if one in FILES and one != module)


def reached(start: Iterable[str]) -> set[str]:
    """All modules that the given ones lead to, themselves included. A package's own file leads
    nowhere by being imported: what is used of it is followed by name."""
    seen, left = set(), list(start)
    while left:
        module = left.pop()
        if module in seen:
            continue
        seen.add(module)
        if module not in PACKAGES:
            left += uses(module)
    return seen
