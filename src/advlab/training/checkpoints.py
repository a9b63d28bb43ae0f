"""Nested states (tensors, numbers, text, lists, dicts) as safetensors files, written atomically."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ..core.errors import AdvlabError
from ..core.files import read_tensors, write_tensors


def write_state(path: Path, state: Mapping) -> None:
    """Store a state: its tensors under their path in it (`model/weight`), the rest as JSON."""
    tensors: dict[str, Tensor] = {}
    packed = _pack(state, "", tensors)
    write_tensors(path, tensors, {"advlab": json.dumps(packed)})


def read_state(path: Path) -> dict:
    """The state that `write_state` stored; a damaged file or another one is refused."""
    tensors, metadata = read_tensors(path, sealed=True)
    if "advlab" not in metadata:
        raise AdvlabError(f"{path} must be a checkpoint of a run", "a file without its notes")
    return _unpack(json.loads(metadata["advlab"]), tensors)


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
