"""Several processes that train one model together."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Processes:
    """One of `count` processes, each with its own copy of the model.

    Args:
        rank: which one this is, from 0.
        count: how many there are.
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Put the sum over all processes into each tensor, in one message per type."""
        if self.count == 1:
            return
        for dtype in {tensor.dtype for tensor in tensors}:
            alike = [tensor for tensor in tensors if tensor.dtype == dtype]
            together = torch.cat([tensor.reshape(-1) for tensor in alike]).to(_device())
            dist.all_reduce(together)
            for tensor, total in zip(
                alike, together.split([tensor.numel() for tensor in alike]), strict=True
            ):
                tensor.copy_(total.reshape(tensor.shape))

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Put the mean over all processes into each tensor."""
        self.add_up(tensors)
        for tensor in tensors if self.count > 1 else ():
            tensor.div_(self.count)

    def share(self, tensors: Sequence[Tensor]) -> None:
        """Put the numbers of the first process into the tensors of all."""
        if self.count > 1:
            for tensor in tensors:
                sent = tensor.detach().to(_device(), copy=True).contiguous()
                dist.broadcast(sent, src=0)
                with torch.no_grad():
                    tensor.copy_(sent)

    def any(self, mine: bool) -> bool:
        """Whether something is so on at least one process."""
        told = torch.tensor([float(mine)])
        self.add_up([told])
        return bool(told.item())

    def wait(self) -> None:
        """Go on when all have come here."""
        if self.count > 1:
            dist.barrier()


ALONE = Processes()


def _device() -> torch.device:
    """Where messages are: NCCL knows GPUs only."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def present() -> Processes:
    """The processes of the group that was started (`torchrun`, `fabric run`), if there is one."""
    if dist.is_available() and dist.is_initialized():
        return Processes(dist.get_rank(), dist.get_world_size())
    return ALONE
