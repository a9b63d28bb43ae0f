"""Which rows each step sees."""

import torch
from torch import Tensor, nn

from ..core import inputs
from ..core.errors import AdvlabError
from ..core.inputs import Given, TensorLike
from ..core.randomness import Rng
from ..models import Stack
from ..threats.base import check_finite


class Batches:
    """All rows at every step, or shuffled mini-batches, a new order each epoch.

    The rows of a stack are R equal blocks; each replicate shuffles its own.
    """

    def __init__(self, rows: int, size: int | None, replicates: int):
        if size is not None and size < 1:
            raise AdvlabError("batch must be at least 1, or None for all rows", size)
        self.rows = rows // replicates
        self.size = size if size is not None and size < self.rows else None
        self.first = self.rows * torch.arange(replicates)[:, None]
        self.order = torch.empty(replicates, 0, dtype=torch.long)
        self.position = 0

    def next(self, x: Tensor, y: Tensor, rng: Rng) -> tuple[Tensor, Tensor]:
        if self.size is None:
            return x, y
        if self.position >= self.order.shape[1]:
            self.order, self.position = self._shuffled(rng), 0
        take = self.order[:, self.position : self.position + self.size].flatten()
        self.position += self.size
        return x[take.to(x.device)], y[take.to(y.device)]

    def state_dict(self) -> dict:
        return {"order": self.order, "position": self.position}

    def load_state_dict(self, state: dict) -> None:
        self.order, self.position = state["order"], state["position"]

    def _shuffled(self, rng: Rng) -> Tensor:
        one_each = [rng] * len(self.first) if isinstance(rng, torch.Generator) else rng
        orders = [
            torch.randperm(self.rows, generator=one, device=one.device).cpu() for one in one_each
        ]
        return torch.stack(orders) + self.first


def checked_rows(
    model: nn.Module, x: Given[TensorLike], y: Given[TensorLike]
) -> tuple[Tensor, Tensor]:
    """Check the data, and lay a stack's (R, n, ...) out as R blocks of rows."""
    x, y = inputs.inputs(x, model), inputs.labels(y)
    if x.ndim == 0 or y.ndim == 0:
        raise AdvlabError("x of shape (n, ...) and y of shape (n,)", "a single number")
    check_finite(x, "inputs")
    if y.is_floating_point():
        check_finite(y, "targets")
    kept = next(model.parameters()).dtype
    if x.dtype != kept:
        raise AdvlabError(f"inputs of the model's own type, {kept}", x.dtype, f"use x.to({kept})")
    if isinstance(model, Stack):
        wanted = f"x of shape (R, n, ...) and y of shape (R, n) with R = {model.replicates}"
        if x.ndim < 2 or x.shape[:2] != y.shape or len(x) != model.replicates:
            raise AdvlabError(wanted, f"x {tuple(x.shape)} and y {tuple(y.shape)}")
        return x.flatten(0, 1), y.flatten()
    if x.shape[:1] != y.shape or len(x) == 0:
        raise AdvlabError(
            "x of shape (n, ...) and y of shape (n,), n at least 1",
            f"x {tuple(x.shape)} and y {tuple(y.shape)}",
        )
    return x, y
