"""The reference: a page per room, from docstrings; a page per part of a paper."""

import ast
from collections.abc import Iterator
from pathlib import Path

from addresses import PACKAGE

PARTS = ("data", "models", "theory", "measures", "reductions")
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
    for name in ("attack", "evaluate", "curve", "compare", "fit", "train"):
        lines += [f"- [`advlab.{name}`]({_defined(name)})"]
    rooms = [
        f"| [advlab.{place.stem}]({place.stem}.md) | {summary(place)} |"
        for place in sorted(PACKAGE.iterdir())
        if not place.stem.startswith("_")
        and place.stem not in _SKIPPED
        and (place.suffix == ".py" or (place / "__init__.py").exists())
    ]
    return "\n".join([*lines, "", "| room | what it holds |", "|---|---|", *rooms, ""])


def _defined(name: str) -> str:
    """Where a verb of the front door is explained: `import advlab` is lazy, so its table says."""
    import advlab

    found = getattr(advlab, name)
    room = found.__module__.split(".")[1]
    return f"{room}.md#{found.__module__}.{found.__qualname__}"


def _page(place: Path) -> str:
    dotted = ".".join(("advlab", *place.relative_to(PACKAGE).with_suffix("").parts))
    lines = [f"# {dotted}", "", summary(place), ""]
    modules = list(_modules(place))
    if len(modules) > 3:
        lines += ["| module | what it holds |", "|---|---|"]
        lines += [f"| [{one}](#{one}) | {words} |" for one, words in modules]
    if place.is_dir():
        lines += ["", f'<a id="{dotted}"></a>']
    for one, _ in modules:
        lines += ["", f"::: {one}"]
    return "\n".join(lines) + "\n"


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
