"""Models as the command line names them: importable objects, exported programs, safe checkpoints.

Nothing is unpickled. What can only be read by unpickling is refused, with the way to convert it.
"""

import importlib
import inspect
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..core.errors import AdvlabError

Model = Callable[[Tensor], Tensor]
KINDS = "module:object, a .pt2 file of torch.export, a TorchScript file or a .safetensors file"
PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".ckpt", ".bin")
CONVERT = (
    "a pickle can run any code when it is read. In Python, where you trust the file, load it and "
    "write safetensors.torch.save_file(model.state_dict(), 'model.safetensors') (then add "
    "--architecture module:factory) or torch.export.save(torch.export.export(...), 'model.pt2')"
)


def load_model(source: str, architecture: str | None = None) -> tuple[Model, list[str]]:
    """The model that a word on the command line means, and what should be said about it."""
    path = Path(source)
    if path.suffix == ".safetensors":
        return _from_weights(path, architecture), []
    if architecture is not None:
        raise AdvlabError("--architecture only with a .safetensors file", source)
    if ":" in source and not path.exists():
        return from_import(source), []
    if not path.is_file():
        raise AdvlabError(KINDS, f"{source!r}, which is no file", "write module:object to import")
    if path.suffix == ".pt2":
        from .exported import from_export

        return from_export(path)
    return _from_file(path), []


def from_import(source: str) -> Model:
    """The object of `module:object` or `file.py:object`; a factory is called."""
    made: Any = imported(source)
    if callable(made) and not isinstance(made, nn.Module) and _is_factory(made):
        made = made()
    if not callable(made):
        raise AdvlabError(f"a model or a function that makes one in {source}", type(made).__name__)
    return made  # type: ignore[return-value]


def imported(source: str) -> Any:
    """An object by the name of its module, or of its file, with the current directory searched."""
    place, _, name = source.rpartition(":")
    if place.endswith(".py"):
        from ..lab.loader import find

        module = find(place)
    else:
        module = _module(place)
    for part in name.split("."):
        if not hasattr(module, part):
            raise AdvlabError(f"an object {name!r} in {place}", f"a module without {part!r}")
        module = getattr(module, part)
    return module


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
        raise AdvlabError("a model as module:object", repr(name)) from None


def _is_factory(found: Any) -> bool:
    try:
        needed = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return False
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(p.default is not p.empty or p.kind in starred for p in needed)


def _from_weights(path: Path, architecture: str | None) -> Model:
    """A network by its architecture, with the weights of a checkpoint of ours or a state dict."""
    from ..core.files import read_tensors

    if not path.is_file():
        raise AdvlabError("a .safetensors file", f"{path}, which does not exist")
    tensors, _ = read_tensors(path)
    ours = {name[6:]: value for name, value in tensors.items() if name.startswith("model/")}
    if architecture is None:
        raise AdvlabError(
            f"{path} holds weights only: name the network they belong to",
            "no --architecture",
            "add --architecture module:factory, a function that makes the untrained network",
        )
    model = from_import(architecture)
    if not isinstance(model, nn.Module):
        raise AdvlabError(f"a torch.nn.Module from {architecture}", type(model).__name__)
    try:
        model.load_state_dict(ours or tensors)
    except RuntimeError as error:
        said = " ".join(str(error).split())
        raise AdvlabError(f"weights of {path} that fit {architecture}", f"{said:.300}") from None
    return model.eval()


def _from_file(path: Path) -> Model:
    if not _is_script(path):
        came = f"{path}, a pickle" if _is_pickle(path) else f"{path}, which is none of these"
        raise AdvlabError(KINDS, came, CONVERT if _is_pickle(path) else "")
    from .exported import from_script

    return from_script(path)


def _is_script(path: Path) -> bool:
    """TorchScript files are archives with code in them; what torch.save writes has none."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def _is_pickle(path: Path) -> bool:
    if path.suffix in PICKLES:
        return True
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith(".pkl") for name in archive.namelist())
    with path.open("rb") as file:
        return file.read(1) == b"\x80"
