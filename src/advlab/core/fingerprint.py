"""A short name for whatever a setting holds that is no plain value: a network, a function."""

import hashlib
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn


def digest(source: object) -> str:
    """The same for the same weights and code, another for others.

    A network is known by its class and state, a function by its name, code and what it closes over,
    another callable by its class and fields. What a function reads from its module is not seen.
    """
    found = hashlib.sha256(_name(source).encode())
    _feed(found, source)
    return found.hexdigest()[:16]


def _name(source: object) -> str:
    return source.__qualname__ if isinstance(source, FunctionType) else type(source).__name__


def _feed(found: Any, source: object) -> None:
    if isinstance(source, nn.Module):
        for name, value in sorted(source.state_dict().items()):
            found.update(name.encode())
            _feed(found, value)
    elif isinstance(source, Tensor):
        found.update(source.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    elif isinstance(source, FunctionType):
        found.update(source.__code__.co_code + repr(source.__code__.co_names).encode())
        kept = (*source.__code__.co_consts, *(source.__defaults__ or ()))
        cells = (cell.cell_contents for cell in source.__closure__ or ())
        for value in (*kept, *cells):
            _feed(found, value)
    elif fields := getattr(source, "__dict__", None):
        found.update(type(source).__name__.encode())
        for name, value in sorted(fields.items()):
            found.update(name.encode())
            _feed(found, value)
    else:
        found.update(repr(source).encode())
