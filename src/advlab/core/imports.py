"""Objects of a user's own code by name: `module:object`, or `file.py:object`."""

import hashlib
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from .errors import AdvlabError


def imported(source: str) -> Any:
    """An object by the name of its module, or of its file, with the current directory searched.

    Args:
        source: "package.module:object" or "path/to/file.py:object"; objects may be nested (a.b).

    Example:
        from advlab.core.imports import imported
        imported("my_nets:net")
    """
    place, _, name = source.rpartition(":")
    module = module_of_file(Path(place).resolve()) if place.endswith(".py") else _module(place)
    for part in name.split("."):
        if not hasattr(module, part):
            raise AdvlabError(f"an object {name!r} in {place}", f"a module without {part!r}")
        module = getattr(module, part)
    return module


def module_of_file(path: Path) -> Any:
    """The module of a file; the same file is run once.

    Args:
        path: its whole path.
    """
    module = f"advlab_file_{path_hash(path)[:12]}"
    if module in sys.modules:
        return sys.modules[module]
    if not path.is_file():
        raise AdvlabError("a Python file", f"{path}, which does not exist")
    spec = importlib.util.spec_from_file_location(module, path)
    if spec is None or spec.loader is None:
        raise AdvlabError("a Python file", path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded
    try:
        spec.loader.exec_module(loaded)
    except BaseException:
        del sys.modules[module]
        raise
    return loaded


def path_hash(path: Path) -> str:
    """A hash of a path, not of what is there."""
    return hashlib.sha256(str(path).encode()).hexdigest()


def _module(name: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # A missing import inside the user's own module is that module's mistake: let it show.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise AdvlabError(
            f"a module {name!r} that can be imported from {here}", f"no module {error.name!r}"
        ) from None
    except (ValueError, TypeError):
        raise AdvlabError("an object as module:object", repr(name)) from None
