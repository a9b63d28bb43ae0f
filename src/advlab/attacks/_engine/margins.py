"""The margins of a classifier: how far the scores of other classes are above the label's."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ...core.errors import AdvlabError
from ...core.randomness import Rng
from ...losses import ModelLoss, cross_entropy, dlr, logistic, margin
from ...models import Stack
from ..base import Loss, input_gradient


@dataclass(frozen=True)
class Decision:
    """Differences z_k - z_y of every rival class k and the label y: wrong where one is positive.

    A single real output f with labels -1, +1 has one rival, with the difference -y f. With a sign
    per output (many labels) each label is one: its difference is -y_j f_j.

    Args:
        loss: The model and the labels; its own loss is not used.
    """

    loss: ModelLoss

    @classmethod
    def of(cls, loss: Loss, attack: str) -> "Decision":
        """The decision behind a loss; `attack` is who asks, for the refusal."""
        if isinstance(loss, ModelLoss) and (loss.y.ndim == 1 or _many_labels(loss)):
            return cls(loss)
        what = type(loss).__name__
        raise AdvlabError(
            f"{attack} looks for a decision boundary: it needs a ModelLoss with one label per row",
            what if not isinstance(loss, ModelLoss) else f"targets {tuple(loss.y.shape)}",
            "use PGD for losses that are not about classes",
        )

    def rows(self, index: Int[Tensor, " rows"]) -> "Decision":
        """The decision on some of the rows."""
        return Decision(self.loss.rows(index))

    def differences(self, x: Tensor) -> Float[Tensor, "batch rivals"]:
        """One column per class, minus infinity in the label's own; one for a single output."""
        outputs, y = self.loss.outputs(x), self.loss.y
        most = margin(outputs, y)  # refuses labels that do not fit the outputs
        if y.ndim == 2:
            return -y * outputs
        if single_output(outputs):
            return most[:, None]
        own = y[:, None]
        return (outputs - outputs.gather(1, own)).scatter(1, own, float("-inf"))

    def margin(self, x: Tensor) -> Float[Tensor, " batch"]:
        """The largest difference."""
        with torch.no_grad():
            return margin(self.loss.outputs(x), self.loss.y)

    def rivals(self, x: Tensor, most: int | None = None) -> Int[Tensor, "batch rivals"]:
        """The classes nearest to the label's score, the nearest first."""
        with torch.no_grad():
            differences = self.differences(x)
        count = max(1, differences.shape[1] - (self.loss.y.ndim == 1))
        return differences.topk(min(count, most or count), dim=1).indices

    def linearised(
        self, x: Tensor, rivals: Int[Tensor, "batch rivals"]
    ) -> tuple[
        Float[Tensor, " batch"], Float[Tensor, "batch rivals"], Float[Tensor, "batch rivals d"]
    ]:
        """The margin, the differences of some rivals and their gradients, a backward pass each."""
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            differences = self.differences(leaf)
            values = differences.gather(1, rivals)
            count = values.shape[1]
            slopes = [
                input_gradient(values[:, k], leaf, retain=k + 1 < count) for k in range(count)
            ]
        flat = torch.stack([slope.flatten(1) for slope in slopes], 1)
        return differences.detach().amax(1), values.detach(), flat


def classifies(loss: Loss, outputs: Tensor) -> bool:
    """Whether a loss is about classes, so that its margin says when a row is broken."""
    if not isinstance(loss, ModelLoss) or loss.y.ndim != 1:
        return isinstance(loss, ModelLoss) and _many_labels(loss)
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        return not loss.y.is_floating_point()
    return loss.loss in (margin, logistic)


def _many_labels(loss: ModelLoss) -> bool:
    """Whether there is a sign per output, and not a number to come close to."""
    return loss.y.ndim == 2 and loss.loss in (margin, cross_entropy, dlr)


def rows_may_leave(loss: Loss, rng: Rng, *, one_generator: bool = False) -> bool:
    """Whether broken rows can leave the batch: not where rows are the equal blocks of a stack.

    Args:
        loss: The loss under attack.
        rng: One generator, or one per replicate.
        one_generator: Whether draws are made for the rows that are left, and not for all: one
            generator serves any number of rows, several need the blocks they were made for.
    """
    if not isinstance(loss, ModelLoss) or (one_generator and not isinstance(rng, torch.Generator)):
        return False
    if isinstance(loss.model, nn.Module):
        return not any(isinstance(module, Stack) for module in loss.model.modules())
    return isinstance(rng, torch.Generator) or len(rng) == 1


def single_output(outputs: Tensor) -> bool:
    """Whether there is one number per row, for labels -1 and +1."""
    return outputs.ndim == 1 or outputs.shape[1:] == (1,)
