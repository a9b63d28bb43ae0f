"""A Fabric of lightning-fabric as the place to train: its device, precision and processes."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn

from ..core.errors import AdvlabError
from .processes import present

PRECISIONS = ("32-true", "bf16-mixed")
"""Others need gradients that are scaled, or weights of another type."""
STRATEGIES = ("SingleDeviceStrategy", "DDPStrategy")
"""One whole copy of the model per process; gradients are added up by the loop itself."""


def placed(model: nn.Module, fabric: Any) -> AbstractContextManager:
    """Move a model to where a Fabric wants it; the block in which to train.

    Args:
        model: the network, which is moved in place.
        fabric: a `lightning_fabric.Fabric` that was launched, or None for neither.

    Raises:
        AdvlabError: it is no Fabric, or one whose strategy or precision the loop does not have.
    """
    if fabric is None:
        return nullcontext()
    parts = [getattr(fabric, name, None) for name in ("strategy", "device", "autocast")]
    if any(part is None for part in parts):
        raise AdvlabError("a lightning_fabric.Fabric", type(fabric).__name__)
    strategy = type(fabric.strategy).__name__
    if strategy not in STRATEGIES:
        raise AdvlabError('a Fabric with strategy="ddp" or one device', strategy)
    precision = fabric.strategy.precision.precision
    if precision not in PRECISIONS:
        raise AdvlabError(f"a Fabric with precision {' or '.join(PRECISIONS)}", precision)
    if fabric.world_size != present().count:
        raise AdvlabError(
            f"a Fabric whose {fabric.world_size} processes were started",
            f"{present().count}",
            "call fabric.launch() first, or start the script with torchrun or fabric run",
        )
    model.to(fabric.device)
    return fabric.autocast()
