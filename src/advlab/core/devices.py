"""Where tensors are: the device of a model, the devices of a machine, and what is free to ask."""

from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from .errors import AdvlabError

NAMES = ("auto", "cpu", "cuda", "mps")


def device_of(model: object, x: Tensor) -> torch.device:
    """Where inputs of a model belong: on the device of its first weights.

    Args:
        model: a network, or a function, of which nothing is known.
        x: its inputs, whose own device is the answer for a function.
    """
    if not isinstance(model, nn.Module):
        return x.device
    weights = chain(model.parameters(), model.buffers())
    return next((weight.device for weight in weights), x.device)


def choose_device(name: str) -> torch.device:
    """A device by name, if this machine has it.

    Args:
        name: "cpu", "cuda" (also "cuda:1"), "mps", or "auto": cuda where there is one, then mps,
            else cpu.
    """
    kind, _, number = name.partition(":")
    if kind not in NAMES or (number and not (kind == "cuda" and number.isdecimal())):
        raise AdvlabError(f"a device among {', '.join(NAMES)}", f"{name!r:.40}")
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if kind == "auto":
        return torch.device(next((one for one, here in present.items() if here), "cpu"))
    if not present.get(kind, True) or (number and int(number) >= torch.cuda.device_count()):
        here = ", ".join(["cpu", *(one for one, here in present.items() if here)])
        raise AdvlabError(f"a device of this machine, {here}", name, "auto takes the best")
    return torch.device(name)


def moved(model: Any, device: torch.device) -> Any:
    """A network on a device; a function is handed on, as it has no weights to move.

    Args:
        model: the network, which is moved in place.
        device: where to.
    """
    if not isinstance(model, nn.Module):
        return model
    weights = chain(model.parameters(), model.buffers())
    if device.type == "mps" and any(weight.dtype == torch.float64 for weight in weights):
        raise AdvlabError(
            "weights of at most 32 bits, as mps has no float64", "float64",
            "make the model with .float(), or choose the device cpu",
        )  # fmt: skip
    return model.to(device)
