"""The code that is installed now, read from its sources and not imported."""

import hashlib
import sys
from pathlib import Path
from types import ModuleType

from ..core.files import file_checksum
from ..core.fingerprint import code_fingerprint
from ..core.reachable import defines
from .loader import dotted, find_here


def installed_code(name: str) -> str | None:
    """The fingerprint of the code that would compute an experiment now; None if it is not here.

    It is read from the sources and not imported. The cases' classes count too, since they stand in
    the same file or are named by `compute`.

    Args:
        name: the experiment's name, which is a registered one, a module, or a file with or without
            its ".py".
    """
    file = Path(name if name.endswith(".py") else f"{name}.py")
    module = _read_only_module(file.resolve()) if file.is_file() else dotted(name)
    find_here()
    return code_fingerprint(f"{module}:compute") if defines(module, "compute") else None


def source_identity(source: str) -> str | None:
    """What tells a model from another one of the same name; None if it is not here.

    Args:
        source: a file, a folder that `save_model` wrote, or `module:object` or `file.py:object`,
            whose code counts.

    Example:
        from advlab.lab.installed import source_identity
        source_identity("my_nets:net")  # "code 1d2e93994f6c5e28"
    """
    if Path(source).is_file():
        return f"sha256 {file_checksum(Path(source))}"
    if (weights := Path(source) / "model.safetensors").is_file():
        return f"sha256 {file_checksum(weights)}"
    place, _, name = source.rpartition(":")
    if not name or not place:
        return None
    find_here()
    file = Path(place)
    if place.endswith(".py") and not file.is_file():
        return None
    module = _read_only_module(file.resolve()) if place.endswith(".py") else place
    outer = name.partition(".")[0]
    return f"code {code_fingerprint(f'{module}:{outer}')}" if defines(module, outer) else None


def _read_only_module(path: Path) -> str:
    """A name under which the reader of sources finds a file that is not imported."""
    data = str(path).encode() + path.read_bytes()
    name = f"advlab_source_{hashlib.sha256(data).hexdigest()[:12]}"
    stand_in = ModuleType(name)
    stand_in.__file__ = str(path)
    sys.modules.setdefault(name, stand_in)
    return name
