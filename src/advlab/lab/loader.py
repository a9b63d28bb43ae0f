"""Where experiments live: a registered name, a module, an object of a module, or a file."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from ..core.errors import AdvlabError
from ..core.imports import module_of_file, path_hash

BUILT_IN = "advlab.papers."
"""Modules of the experiments that come with advlab begin so."""


def find(source: str) -> Any:
    """The module (or object) that holds an experiment's names.

    Sources are "paper/item" for the papers that come with advlab, "package.module" and
    "package.module:object" for anything that can be imported from here, and "path/to/file.py".
    """
    if source.endswith(".py"):
        return module_of_file(Path(source).resolve())
    module, _, attribute = dotted(source).partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise _unknown(source, "not a module's name")
    found = _imported(module, source)
    if not attribute:
        return found
    if not hasattr(found, attribute):
        raise AdvlabError(f"an object {attribute!r} in the module {module}", source)
    return getattr(found, attribute)


def name(source: str) -> str:
    """The experiment's name, also that of its folder: "paper/item", or the source's own name.

    A file below the current folder is named by its path from there, another one by its stem and a
    hash of its whole path. Where that folder is another source's, see `origin.own_folder`.
    """
    if source.endswith(".py"):
        return file_name(Path(source))
    module = dotted(source)
    paper, inside, item = module.removeprefix(BUILT_IN).partition(".experiments.")
    if module.startswith(BUILT_IN) and inside:
        return f"{paper}/{item}"
    return module.replace(":", ".")


def file_name(file: Path) -> str:
    """A name for a file: its path from the current folder, or its stem and a hash of its path.

    Args:
        file: its path, absolute or from the current folder.
    """
    path, here = file.resolve(), Path.cwd().resolve()
    if path.is_relative_to(here):
        return path.relative_to(here).with_suffix("").as_posix()
    return f"{path.stem}-{path_hash(path)[:8]}"


def dotted(source: str) -> str:
    """The module of a registered name; other names are modules' names already."""
    if "/" not in source:
        return source
    return BUILT_IN + source.replace("/", ".experiments.", 1).replace("/", ".")


def find_here() -> None:
    """Let modules of the current folder be found."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)


def _imported(module: str, source: str) -> Any:
    find_here()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A missing import inside the experiment's own file is that file's mistake: let it show.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise _unknown(source, f"there is no module {error.name}") from None


def _unknown(source: str, why: str) -> AdvlabError:
    return AdvlabError(
        "an experiment's name, a module or a .py file",
        f"{source!r} ({why})",
        "`advlab list` shows the names",
    )
