"""Clean and robust error and loss of a model on some examples, as training watches them."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..attacks import PGD, Attack
from ..core.devices import device_of
from ..core.randomness import generator
from ..losses import ModelLoss, PerExample, is_error, margin, resolve
from ..threats import Threat

USUAL = PGD(steps=10, step_size=0.25)


@dataclass(frozen=True)
class ErrorsOf:
    """Errors and mean losses of a model on fixed examples, the same attack each time.

    The robust error is that of one attack, so the true one is at least as large.

    Args:
        x: inputs. y: their labels, classes or -1 and +1.
        ball: the threat set; None measures the clean ones only.
        attack: how attacked points are found; ten steps of PGD by default.
        loss: the loss to report, a name or a function.
        rows: how many examples at a time.

    Example:
        from advlab.training import ErrorsOf
        ErrorsOf(x, y, ball)(model)  # {"clean_error": 0.1, "clean_loss": 0.4, "robust_error": ...}
    """

    x: Tensor
    y: Tensor
    ball: Threat | None = None
    attack: Attack = USUAL
    loss: str | PerExample = "cross_entropy"
    rows: int = 250

    def __call__(self, model: nn.Module) -> dict[str, float]:
        device = device_of(model, self.x)
        rng = generator("errors while training")
        wrong = {"clean": 0.0, "robust": 0.0}
        total = {"clean": 0.0, "robust": 0.0}
        for x, y in zip(self.x.split(self.rows), self.y.split(self.rows), strict=True):
            x, y = x.to(device), y.to(device)
            climbed = ModelLoss(model, y, resolve(self.loss))
            bad = self._count("clean", climbed, x, wrong, total)
            if self.ball is not None:
                moved = self.attack.perturb(climbed, x, self.ball, rng=rng)
                self._count("robust", climbed, moved, wrong, total, bad)
        kinds = ("clean",) if self.ball is None else ("clean", "robust")
        return {
            f"{kind}_{name}": sums[kind] / len(self.y)
            for kind in kinds
            for name, sums in (("error", wrong), ("loss", total))
        }

    @torch.no_grad()
    def _count(
        self,
        kind: str,
        climbed: ModelLoss,
        x: Tensor,
        wrong: dict[str, float],
        total: dict[str, float],
        before: Tensor | None = None,
    ) -> Tensor:
        """Add the errors and losses of some rows; a clean error is a robust one too."""
        outputs = climbed.outputs(x)
        bad = is_error(margin(outputs, climbed.y))
        bad = bad if before is None else bad | before
        wrong[kind] += float(bad.sum())
        total[kind] += float(climbed.loss(outputs, climbed.y).double().sum())
        return bad
