"""Where tensors are: the device of a model, the devices of a machine, and what is free to ask."""

from itertools import chain

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


def on_cpu(x: Tensor) -> bool:
    """Whether looking at a value costs nothing: elsewhere the machine waits for the device.

    Args:
        x: any tensor.
    """
    return x.device.type == "cpu"


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
        raise AdvlabError(
            "a device that this machine has", f"{name}, of {here}", "use --device auto"
        )
    return torch.device(name)
