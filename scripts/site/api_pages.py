"""The reference: a page per room, from docstrings; a page per part of a paper."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from addresses import PACKAGE

PARTS = ("data", "models", "theory", "measures", "reductions")
EXAMPLES = (
    "Examples import what they use of advlab. What they neither make nor import is yours: inputs "
    "`x` and labels `y`, a network `model` or `net`, a threat set `ball`, a generator `rng`."
)
_SKIPPED = {"papers", "cli"}


def pages() -> dict[str, tuple[str, str]]:
    """Of each page its title and its Markdown."""
    found = {"api/advlab.md": ("advlab", _front_door())}
    for place in sorted(PACKAGE.iterdir()):
        room = place.stem
        if room.startswith("_") or room in _SKIPPED:
            continue
        if place.suffix == ".py" or (place / "__init__.py").exists():
            found[f"api/{room}.md"] = (f"advlab.{room}", _page(place))
    for paper in sorted((PACKAGE / "papers").iterdir()):
        for part in PARTS:
            if (paper / part / "__init__.py").exists():
                page = _page(paper / part)
                found[f"api/{paper.name}-{part}.md"] = (f"{paper.name}: {part}", page)
    return found


def summary(place: Path) -> str:
    """The first line of a module's docstring."""
    file = place / "__init__.py" if place.is_dir() else place
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def _front_door() -> str:
    lines = [
        "# advlab",
        "",
        "The verbs of everyday use. Everything else is imported from its room.",
        "",
    ]
    lines += [f"- [`advlab.{name}`]({_defined(name)}): {_first_line(name)}" for name in _verbs()]
    rooms = [
        f"| [advlab.{place.stem}]({place.stem}.md) | {summary(place)} |"
        for place in sorted(PACKAGE.iterdir())
        if not place.stem.startswith("_")
        and place.stem not in _SKIPPED
        and (place.suffix == ".py" or (place / "__init__.py").exists())
    ]
    return "\n".join([*lines, "", "| room | what it holds |", "|---|---|", *rooms, ""])


def _verbs() -> list[str]:
    """What `import advlab` offers beside its rooms."""
    import advlab

    return sorted(advlab._OBJECTS)


def _defined(name: str) -> str:
    """Where a verb of the front door is explained: `import advlab` is lazy, so its table says."""
    import advlab

    found = getattr(advlab, name)
    room = found.__module__.split(".")[1]
    return f"{room}.md#{found.__module__}.{found.__qualname__}"


def _first_line(name: str) -> str:
    import advlab

    text = inspect.getdoc(getattr(advlab, name)) or ""
    return " ".join(text.split("\n\n")[0].split())


def _page(place: Path) -> str:
    dotted = ".".join(("advlab", *place.relative_to(PACKAGE).with_suffix("").parts))
    lines = [f"# {dotted}", "", summary(place), "", EXAMPLES, ""]
    modules = list(_modules(place))
    if len(modules) > 3:
        lines += ["| module | what it holds |", "|---|---|"]
        lines += [f"| [{one}](#{one}) | {words} |" for one, words in modules]
    if place.is_dir():
        lines += ["", f'<a id="{dotted}"></a>']
    for one, _ in modules:
        lines += ["", f"::: {one}"]
        names = public(one)
        if names:
            listed = "".join(f"\n        - {name}" for name in names)
            lines += ["    options:", f"      members:{listed}"]
    return "\n".join(lines) + "\n"


def public(module: str) -> list[str]:
    """The names of a module that a package above it exports, in their order; none for a module that
    is imported from as it is, of which all is shown.

    Args:
        module: its dotted name.
    """
    file = PACKAGE.parent / (module.replace(".", "/") + ".py")
    if not file.exists():
        return []
    above = [folder / "__init__.py" for folder in file.parents if PACKAGE in folder.parents]
    exported = {name for one in above for name in _exports(one)}
    return [name for name in _top_names(file) if name in exported]


def _exports(file: Path) -> Iterator[str]:
    """What a package re-exports by name, `from .x import Y as Y`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (one.name for one in node.names if one.name == one.asname)


def _top_names(file: Path) -> Iterator[str]:
    """Classes, functions and variables of a module, in their order."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for one in targets if isinstance(one, ast.Name))


def _modules(place: Path) -> Iterator[tuple[str, str]]:
    if place.suffix == ".py":
        yield (
            ".".join(("advlab", *place.relative_to(PACKAGE).with_suffix("").parts)),
            summary(place),
        )
        return
    for inner in sorted(place.iterdir(), key=lambda one: (one.is_dir(), one.name)):
        if inner.name.startswith("_") or (inner.is_dir() and not (inner / "__init__.py").exists()):
            continue
        if inner.suffix == ".py" or inner.is_dir():
            yield from _modules(inner)
