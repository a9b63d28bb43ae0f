"""Nested states (tensors, numbers, text, lists, dicts) as safetensors files, written atomically."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..core.errors import AdvlabError


def write_state(path: Path, state: Mapping) -> None:
    """Store a state: its tensors under their path in it (`model/weight`), the rest as JSON."""
    tensors: dict[str, Tensor] = {}
    packed = _pack(state, "", tensors)
    write_tensors(path, tensors, {"advlab": json.dumps(packed)})


def read_state(path: Path) -> dict:
    """The state that `write_state` stored; another file is refused."""
    tensors, metadata = read_tensors(path)
    if "advlab" not in metadata:
        raise AdvlabError(f"{path} must be a checkpoint of a run", "a file without its notes")
    return _unpack(json.loads(metadata["advlab"]), tensors)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        save_file({k: v.detach().contiguous() for k, v in tensors.items()}, part, metadata)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Every tensor of a safetensors file and its notes; a broken file is named."""
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise AdvlabError(
            f"{path} must be a whole safetensors file",
            str(error),
            "delete it, or restore it from a copy",
        ) from None


def _pack(value, place: str, tensors: dict[str, Tensor]):
    """The value as JSON, in which a tensor is its name; dicts are pairs, as keys may be numbers."""
    if isinstance(value, Tensor):
        tensors[place] = value
        return {"tensor": place}
    inside = f"{place}/" if place else ""
    if isinstance(value, Mapping):
        return {"dict": [[k, _pack(v, f"{inside}{k}", tensors)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [_pack(v, f"{inside}{i}", tensors) for i, v in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise AdvlabError(
        "a state of tensors, numbers, text, lists and dicts", f"{type(value).__name__} at {place}"
    )


def _unpack(packed, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(packed, dict):
        return packed
    ((kind, inside),) = packed.items()
    if kind == "tensor":
        return tensors[inside]
    if kind == "list":
        return [_unpack(one, tensors) for one in inside]
    return {key: _unpack(one, tensors) for key, one in inside}
