"""Adversarial training of lazy networks without autograd, and linear ones as a single neuron.

The gradient of f = sum_j a_j phi(x'theta_j)/sqrt(h) in x, and the gradient of the attacked loss in
theta, are products of phi' with theta and with x~. So a step is a few batched matrix products: the
numbers of attack and autograd (tests/papers/generalization/test_lazy_training.py) at a fraction of
the price.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ....attacks import FGM, Identity, Surrogate
from ....core.errors import AdvlabError
from ....losses import squared
from ....models import Stack
from ....threats import Ball
from ....training.objectives import AttackedObjective, StepContext
from ..models import LazyNet


class LazyAdversarial(AttackedObjective):
    """The objective `Adversarial()` for lazy networks, squared loss and an l2 ball, in closed form,
    under FGM or Surrogate over it (Algorithm 1, Section 2.2)."""

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        with torch.no_grad():
            x = _attacked(context, _Net.of(context.model)).x
        return context.loss(context.model(x.flatten(0, 1)), context.y)

    def value_and_grad(
        self, context: StepContext, weights: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replicates"], Sequence[Tensor]]:
        with torch.no_grad():
            net = _Net.of(context.model)
            x, residual, slope = _attacked(context, net).parts()
            # (2/n) a_j/sqrt(h) sum_i r~_i phi'(x~_i'theta_j) x~_i
            grad = torch.bmm(slope.mT, residual[:, :, None] * x)
            grad = grad * (2 / x.shape[1] * net.top)[:, :, None]
            return (residual**2).mean(1), [grad.reshape(weights[0].shape)]


def single_neuron(net: LazyNet) -> LazyNet:
    """A linear network as one neuron: the same function now and after every step of training.

    Turning the hidden units so that a points along one of them changes neither f nor, as phi is
    linear, the gradient; the others then have weight zero. From there f follows the linear model
    with the step eta phi'(0)^2 |a|^2 / h.
    """
    if net.activation != "linear":
        raise AdvlabError("one neuron can replace a linear network only", net.activation)
    length = net.top.norm()
    theta = (net.top / length) @ net.theta
    return LazyNet(theta[None], length[None] / math.sqrt(len(net.top)), "linear")


def _linear(z: Tensor) -> tuple[Tensor, Tensor]:
    return z.mul_(0.25), torch.full_like(z, 0.25)


def _sigmoid(z: Tensor) -> tuple[Tensor, Tensor]:
    s = z.sigmoid_()
    slope = torch.addcmul(s, s, s, value=-1)
    return s.sub_(0.5), slope


def _relu(z: Tensor) -> tuple[Tensor, Tensor]:
    # sign(0) = 0 gives the half slope at zero of `models.activations`.
    slope = z.sign().add_(1).mul_(0.125)
    return z.clamp_(min=0).mul_(0.25), slope


CURVES: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "linear": _linear,
    "sigmoid": _sigmoid,
    "relu": _relu,
}
"""phi and phi' of `models.ACTIVATIONS`. They overwrite z: memory traffic is what a step costs."""


@dataclass(frozen=True)
class _Net:
    """R lazy networks; `top` is a/sqrt(h)."""

    theta: Float[Tensor, "R h d"]
    top: Float[Tensor, "R h"]
    activation: str

    @classmethod
    def of(cls, model: object) -> "_Net":
        if isinstance(model, LazyNet):
            theta, top, activation = model.theta[None], model.top[None], model.activation
        elif isinstance(model, Stack) and isinstance(model.skeleton, LazyNet):
            theta, top = model.get_parameter("theta"), model.get_buffer("top")
            activation = model.skeleton.activation
        else:
            raise AdvlabError("LazyAdversarial needs a LazyNet or a stack of them", type(model))
        return cls(theta.detach(), top / math.sqrt(top.shape[1]), activation)

    def evaluate(self, x: Tensor, y: Tensor) -> "_Point":
        value, slope = CURVES[self.activation](torch.bmm(x, self.theta.mT))
        return _Point(x, torch.bmm(value, self.top[:, :, None])[:, :, 0] - y, slope)


@dataclass(frozen=True)
class _Point:
    """Inputs with their residuals f(x) - y and slopes phi'(x'theta_j)."""

    x: Float[Tensor, "R n d"]
    residual: Float[Tensor, "R n"]
    slope: Float[Tensor, "R n h"]

    def worst_of(self, other: "_Point") -> "_Point":
        """This point, overwritten in the rows in which the other one's loss is as large."""
        row = (self.residual.abs() <= other.residual.abs()).nonzero(as_tuple=True)
        if len(row[0]):
            for mine, theirs in zip(self.parts(), other.parts(), strict=True):
                mine[row] = theirs[row]
        return self

    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.x, self.residual, self.slope


def _attacked(context: StepContext, net: _Net) -> _Point:
    radius, xi = _terms(context)
    replicates, _, d = net.theta.shape
    y = context.y.reshape(replicates, -1)
    clean = net.evaluate(context.x.reshape(replicates, -1, d), y)
    if radius == 0:
        return clean
    grad = torch.bmm(clean.slope, net.top[:, :, None] * net.theta)
    grad = 2 * clean.residual[:, :, None] * grad
    size = grad.norm(dim=2, keepdim=True)
    jump = radius * grad / size.clamp(min=torch.finfo(size.dtype).tiny)
    worst = net.evaluate(clean.x + jump, y).worst_of(clean)
    if xi == 0:
        return worst
    # The surrogate shrinks what the inner attack found, which is no move where FGM lowers the loss.
    shrink = size / (size**2 + xi**2).sqrt()
    return net.evaluate(clean.x + shrink * (worst.x - clean.x), y).worst_of(clean)


def _terms(context: StepContext) -> tuple[float, float]:
    """The radius and xi, once it is clear that the closed form holds for this step."""
    ball, attack = context.ball, context.attack
    if isinstance(attack, Identity):
        return 0.0, 0.0
    xi = attack.xi if isinstance(attack, Surrogate) else 0.0
    inner = attack.inner if isinstance(attack, Surrogate) else attack
    simple = isinstance(inner, FGM) and inner.cutoff == 0 and inner.keep_worst
    if context.loss is not squared or ball != Ball("l2", ball.radius):
        raise AdvlabError(
            "LazyAdversarial has a closed form for the squared loss in l2 balls without a box",
            f"{context.loss} in {ball}",
            "use Adversarial() instead",
        )
    if not simple:
        raise AdvlabError(
            "LazyAdversarial has a closed form for FGM, and Surrogate over it",
            attack,
            "use Adversarial() instead",
        )
    return float(ball.radius), xi
