"""Checks of what was handed in: units of eps and inputs, labels, kind of outputs."""

import torch
from scipy import stats

from ...certify import Smoothed
from ...core.devices import device_of
from ...losses import evaluating
from ...models import LabelsOnly
from ..evaluation import CheckWarning
from ..suited import holds
from .context import CheckContext

LEVELS = 255


def eps_of_another_scale(context: CheckContext) -> list[CheckWarning]:
    """An eps as large as the whole space, or below one grey level of inputs from 0 to 255."""
    if not context.ball.convex or context.ball.radius == 0:
        return []
    low, high = context.ball.limits or (float(context.x.min()), float(context.x.max()))
    width, eps = high - low, context.ball.radius
    across = width * context.x[0].numel() ** (1 / context.ball.order)
    if eps >= across > 0:
        meant = f"; did you mean {eps:g}/255?" if eps / LEVELS < across and width <= 2 else ""
        text = f"eps {eps:g} reaches across all inputs (from {low:g} to {high:g}){meant}"
        return [CheckWarning("eps_scale", f"{text} Any input can be moved to any other.")]
    grey = low >= 0 and LEVELS / 2 < high <= LEVELS
    if grey and eps < 1 and eps * LEVELS >= 0.4:
        text = (
            f"eps {eps:.4g} is less than one grey level of inputs from {low:g} to {high:g}; did "
            f"you mean {eps * LEVELS:.3g}, or inputs divided by 255?"
        )
        return [CheckWarning("eps_scale", text)]
    return []


def normalised_outside(context: CheckContext) -> list[CheckWarning]:
    """Images that are standardised before the model sees them: eps is then in those units."""
    x = context.x[context.few].cpu().double()
    if x.ndim < 4 or float(x.min()) >= 0 or context.ball.limits is not None:
        return []
    mean, std = float(x.mean()), float(x.std())
    if abs(mean) > 0.6 or not 0.4 < std < 2.0:
        return []
    text = (
        f"images look standardised (mean {mean:.2f}, standard deviation {std:.2f}) and there is no "
        "box: eps is in those units, and perturbed images may be no images. Put the normalisation "
        "into the model (advlab.models.Normalised) and give inputs in [0, 1] with box 0,1"
    )
    return [CheckWarning("normalisation", text)]


def labels_unlike_outputs(context: CheckContext) -> list[CheckWarning]:
    """Accuracy below chance, labels under other names, or far fewer labels than outputs."""
    if context.classes < 2 or len(context.y) < 20:
        return []
    answers, y = _answers(context).cpu(), context.y.cpu()
    right, chance = int((answers == y).sum()), 1 / context.classes
    if context.classes >= 2 * (int(y.max()) + 1):
        text = f"the model has {context.classes} outputs, but labels only go up to {int(y.max())}"
        return [CheckWarning("labels", f"{text}: is it a model for this task?")]
    renamed = _renaming(answers, y, context.classes)
    if renamed is not None:
        new, same = renamed
        names = ", ".join(f"{k} for {int(new[k])}" for k in range(context.classes) if k != new[k])
        text = (
            f"labels look like other names of the outputs: accuracy is {right / len(y):.0%} as "
            f"given, {same:.0%} if the model says {names[:120]}"
        )
        return [CheckWarning("labels", text)]
    if stats.binomtest(right, len(y), chance, alternative="less").pvalue < 1e-3:
        text = f"accuracy {right / len(y):.1%} is below chance ({chance:.1%}): do labels match?"
        return [CheckWarning("labels", text)]
    return []


def probabilities_not_logits(context: CheckContext) -> list[CheckWarning]:
    """Outputs that are a softmax: differences vanish in rounding where the model is sure."""
    out = context.outputs
    counted = isinstance(context.model, Smoothed) or holds(context.model, LabelsOnly)
    if counted or context.classes < 2 or float(out.min()) < 0:
        return []
    if not torch.allclose(out.sum(1), torch.ones_like(out[:, 0]), atol=1e-4):
        return []
    text = (
        "outputs are probabilities (a softmax): where the model is sure they round to 0 and 1 and "
        "hide the gradient. Return the logits"
    )
    return [CheckWarning("softmax", text)]


def _answers(context: CheckContext, size: int = 256) -> torch.Tensor:
    with torch.no_grad(), evaluating(context.model):
        place = device_of(context.model, context.x)
        parts = (part.to(place) for part in context.x.split(size))
        return torch.cat([context.model(part).argmax(1) for part in parts])


def _renaming(
    answers: torch.Tensor, y: torch.Tensor, classes: int
) -> tuple[torch.Tensor, float] | None:
    """For each answer the label it mostly stands for, if that is a permutation and far better."""
    confusion = torch.zeros(classes, classes, dtype=torch.int64)
    confusion.index_put_((answers, y), torch.ones(len(y), dtype=torch.int64), True)
    new = confusion.argmax(1)
    asked = confusion.sum(1) > 0
    # Answers that never come keep their own name, unless another has taken it.
    new = torch.where(asked, new, torch.arange(classes))
    if len(new.unique()) < classes or bool((new == torch.arange(classes)).all()):
        return None
    before, after = (
        float(confusion.diagonal().sum()),
        float(confusion.gather(1, new[:, None]).sum()),
    )
    better = after / len(y) > max(0.5, before / len(y) + 0.3)
    return (new, after / len(y)) if better else None
