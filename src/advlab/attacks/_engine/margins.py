"""A classifier as an attack on its decision sees it: how far each rival class leads the label."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ...core.errors import AdvlabError
from ...core.randomness import Rng
from ...losses import ModelLoss, logistic, margin
from ...models import Stack
from ..base import Loss, input_gradient


@dataclass(frozen=True)
class Decision:
    """Leads z_k - z_y of every rival k over the label y; where one is positive the model is wrong.

    A single real output f with labels -1, +1 has one rival, whose lead is -y f.
    """

    loss: ModelLoss

    @classmethod
    def of(cls, loss: Loss, attack: str) -> "Decision":
        if isinstance(loss, ModelLoss) and loss.y.ndim == 1:
            return cls(loss)
        what = type(loss).__name__
        raise AdvlabError(
            f"{attack} looks for a decision boundary: it needs a ModelLoss with one label a row",
            what if not isinstance(loss, ModelLoss) else f"targets {tuple(loss.y.shape)}",
            "use PGD for losses that are not about classes",
        )

    def rows(self, index: Int[Tensor, " rows"]) -> "Decision":
        return Decision(self.loss.rows(index))

    def leads(self, x: Tensor) -> Float[Tensor, "batch rivals"]:
        """One column a class, minus infinity in the label's own; one column for a single output."""
        outputs, y = self.loss.outputs(x), self.loss.y
        most = margin(outputs, y)  # refuses labels that do not fit the outputs
        if outputs.ndim == 1 or outputs.shape[1] == 1:
            return most[:, None]
        own = y[:, None]
        return (outputs - outputs.gather(1, own)).scatter(1, own, float("-inf"))

    def margin(self, x: Tensor) -> Float[Tensor, " batch"]:
        with torch.no_grad():
            return margin(self.loss.outputs(x), self.loss.y)

    def rivals(self, x: Tensor, most: int | None = None) -> Int[Tensor, "batch rivals"]:
        """The classes nearest to the label's score, the nearest first."""
        with torch.no_grad():
            leads = self.leads(x)
        count = max(1, leads.shape[1] - 1)
        return leads.topk(min(count, most or count), dim=1).indices

    def linearised(
        self, x: Tensor, rivals: Int[Tensor, "batch rivals"]
    ) -> tuple[
        Float[Tensor, " batch"], Float[Tensor, "batch rivals"], Float[Tensor, "batch rivals d"]
    ]:
        """The margin, the leads of some rivals and their gradients: a backward pass a rival."""
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            leads = self.leads(leaf)
            values = leads.gather(1, rivals)
            count = values.shape[1]
            slopes = [
                input_gradient(values[:, k], leaf, retain=k + 1 < count) for k in range(count)
            ]
        flat = torch.stack([slope.flatten(1) for slope in slopes], 1)
        return leads.detach().amax(1), values.detach(), flat


def classifies(loss: Loss, outputs: Tensor) -> bool:
    """Whether a loss is about classes, so that its margin says when a row is broken."""
    if not isinstance(loss, ModelLoss) or loss.y.ndim != 1:
        return False
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        return not loss.y.is_floating_point()
    return loss.loss in (margin, logistic)


def rows_may_leave(loss: Loss, rng: Rng) -> bool:
    """Whether a batch may shrink: not where rows come in the equal blocks of a stack."""
    if not isinstance(loss, ModelLoss):
        return False
    if isinstance(loss.model, nn.Module):
        return not any(isinstance(module, Stack) for module in loss.model.modules())
    return isinstance(rng, torch.Generator) or len(rng) == 1
