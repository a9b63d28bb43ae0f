"""Models as the command line names them: importable objects, exported programs, safe checkpoints.

`module:object` is the user's own code and runs as such. Files run no code here: weights are read as
plain numbers, programs run in a sandboxed process (`models.sandboxed`) unless the user trusts them,
and what can only be read by unpickling freely is refused, with the way to convert it.
"""

import inspect
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..attacks import Attack
from ..core.errors import AdvlabError
from ..core.imports import imported
from ..core.inputs import TROUBLES, whole_line
from ..models.folder import is_model_folder
from ..models.folder import load_model as load_folder

Model = Callable[[Tensor], Tensor] | Any
"""A network, a function, or an estimator with `predict`."""
KINDS = "module:object, a model's folder, or a .safetensors, .pt2, TorchScript or .onnx file"
PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".ckpt", ".bin")
CONVERT = (
    "a pickle can run any code when it is read. A plain state dict is read safely with "
    "--architecture module:factory. Of a whole model, in Python, where you trust the file, write "
    "safetensors.torch.save_file(model.state_dict(), 'model.safetensors') or "
    "torch.export.save(torch.export.export(...), 'model.pt2')"
)
STATES = (".pt", ".pth", ".ckpt", ".bin")
WEIGHTS = ".safetensors, or a state dict in .pt, .pth, .ckpt or .bin"


def load_model(
    source: str, architecture: str | None = None, trust: bool = False
) -> tuple[Model, list[str]]:
    """The model that a word on the command line means.

    Args:
        source: `module:object`, `file.py:object`, a folder that `save_model` wrote, or a file.
        architecture: `module:factory` that makes the network of a file of weights.
        trust: run the program of a file in this process, outside the sandbox.

    Returns:
        the model, and what should be said about it.
    """
    path = Path(source)
    if path.suffix == ".safetensors" or (architecture is not None and path.suffix in STATES):
        return _from_weights(path, architecture), []
    if is_model_folder(path):
        made: Any = None if architecture is None else from_import(architecture)
        return load_folder(path, made), []
    if architecture is not None:
        raise AdvlabError(
            f"--architecture only with a model's folder or a file of weights ({WEIGHTS})", source
        )
    if ":" in source and not path.exists():
        return from_import(source), []
    if not path.is_file():
        raise AdvlabError(KINDS, f"{source!r}, which is no file", "write module:object to import")
    from .exported import load_program

    if path.suffix in (".pt2", ".onnx"):
        return load_program(path, "export" if path.suffix == ".pt2" else "onnx", trust)
    if _is_script(path):
        return load_program(path, "script", trust)
    came = f"{path}, a pickle" if _is_pickle(path) else f"{path}, which is none of these"
    raise AdvlabError(KINDS, came, CONVERT if _is_pickle(path) else "")


def load_attack(source: str) -> Attack:
    """The attack of `module:object` or `file.py:object`, the user's own code; a class is made.

    Args:
        source: an attack, or a class of attacks that needs no settings.
    """
    found: Any = imported(source)
    if inspect.isclass(found) and issubclass(found, Attack):
        try:
            found = found()
        except (AdvlabError, TypeError, ValueError) as error:
            raise AdvlabError(
                "an attack that needs no settings", whole_line(error), "name an object instead"
            ) from None
    if not isinstance(found, Attack):
        raise AdvlabError(f"an attack at {source}", f"{found!r:.60}")
    return found


def from_import(source: str) -> Model:
    """The object of `module:object` or `file.py:object`; a factory is called."""
    made: Any = imported(source)
    if _estimates(made):
        return made
    if callable(made) and not isinstance(made, nn.Module):
        needed = _needed(made)
        if len(needed) > 1 or (needed and inspect.isclass(made)):
            raise AdvlabError(
                "a model, or a function without arguments that makes one",
                f"{source} needs {', '.join(needed)}",
                "write a function that fills them in, and name that",
            )
        made = made if needed else _made(made, source)
    if not callable(made) and not _estimates(made):
        raise AdvlabError(f"a model or a function that makes one in {source}", type(made).__name__)
    return made


def _estimates(found: Any) -> bool:
    """Whether it is an estimator: an object, and no class, with `predict`."""
    return hasattr(found, "predict") and not inspect.isclass(found) and not callable(found)


def _needed(found: Any) -> list[str]:
    """The arguments that a function asks for: none of a factory, one of a model."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return ["x"]
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in starred]


def _made(factory: Any, source: str) -> Any:
    try:
        return factory()
    except TROUBLES as error:
        raise AdvlabError(f"a model from {source}", whole_line(error)) from error


def _from_weights(path: Path, architecture: str | None) -> Model:
    """A network by its architecture, with the weights of a checkpoint of ours or a state dict."""
    if not path.is_file():
        raise AdvlabError("a file of weights", f"{path}, which does not exist")
    tensors = _tensors(path)
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


def _tensors(path: Path) -> dict[str, Tensor]:
    if path.suffix == ".safetensors":
        from ..core.files import read_tensors

        return read_tensors(path)[0]
    import torch

    try:
        # Tensors and containers of them; anything else in the file is refused unread.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, ValueError, EOFError, OSError, pickle_error()) as error:
        said = " ".join(str(error).split())
        raise AdvlabError(f"a plain state dict in {path}", f"{said:.160}", CONVERT) from None
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    if not isinstance(found, dict) or not all(isinstance(v, Tensor) for v in found.values()):
        raise AdvlabError(f"a dict of tensors in {path}", type(found).__name__, CONVERT)
    return found


def pickle_error() -> type[Exception]:
    """What torch raises for a file that is no state dict, without importing pickle here."""
    from torch.serialization import pickle

    return pickle.UnpicklingError


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
