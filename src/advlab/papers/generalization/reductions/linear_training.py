"""Adversarial training of linear models without ever making an adversarial input.

The attack on theta'x moves x along theta (l2) or along a function of theta (linf), so the loss at
x~ and its gradient come from the residuals r = X theta - y alone: the numbers of attack and
autograd (tests/papers/generalization/test_linear_training.py) at the price of two products with X.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ....attacks import FGM, Attack, Exact, Identity, Surrogate
from ....core.errors import AdvlabError
from ....losses import squared
from ....models import Linear, Stack
from ....threats import Ball, Threat
from ....training.objectives import AttackedObjective, StepContext


class LinearAdversarial(AttackedObjective):
    """The objective `Adversarial()` for f = theta'x, squared loss and an l2 or linf ball, in closed
    form, under Exact, FGM or Surrogate over them (Algorithm 1)."""

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        theta = _theta(context)
        residual, _ = _attacked_residual(context, theta)
        return (residual**2).flatten()

    def value_and_grad(
        self, context: StepContext, weights: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replicates"], Sequence[Tensor]]:
        with torch.no_grad():
            theta = _theta(context)
            residual, shift = _attacked_residual(context, theta)
            x = context.x.reshape(len(theta), -1, theta.shape[1])
            # (2/n) sum_i r~_i (x_i + A_i), with A_i = shift_i * theta for l2.
            grad = torch.bmm(residual[:, None], x)[:, 0]
            if shift.ndim == 2:
                grad = grad + (shift * residual).sum(1, keepdim=True) * theta
            else:
                grad = grad + torch.bmm(residual[:, None], shift)[:, 0]
            grad = 2 / x.shape[1] * grad
            return (residual**2).mean(1), [grad.reshape(weights[0].shape)]


def _attacked_residual(context: StepContext, theta: Float[Tensor, "R d"]) -> tuple[Tensor, Tensor]:
    """r~ = theta'x~ - y, and what moves x: A = shift * theta (R, n), or A itself (R, n, d)."""
    ball, xi = _terms(context)
    x = context.x.reshape(len(theta), -1, theta.shape[1])
    r = torch.bmm(x, theta[:, :, None])[:, :, 0] - context.y.reshape(len(theta), -1)
    if ball.order == 2:
        # g = 2 r theta, so A = eps g / sqrt(|g|^2 + xi^2) = shift * theta; 0/0 means no attack.
        a = theta.norm(dim=1, keepdim=True)
        if xi > 0:
            shift = (r * (2 * a)).square_().add_(xi**2).rsqrt_().mul_(r).mul_(2 * ball.radius)
        else:
            shift = r.sign().mul_(torch.where(a > 0, ball.radius / a, 0.0))
        return torch.addcmul(r, shift, a**2), shift
    if xi == 0:
        shift = ball.radius * r.sign()[:, :, None] * theta.sign()[:, None]
    else:
        g = 2 * r[:, :, None] * theta[:, None]
        shift = ball.radius * g / (g.abs() + xi)
    return r + torch.bmm(shift, theta[:, :, None])[:, :, 0], shift


def _theta(context: StepContext) -> Float[Tensor, "R d"]:
    model = context.model
    if isinstance(model, Stack) and isinstance(model.skeleton, Linear):
        return model.get_parameter("theta")
    if isinstance(model, Linear):
        return model.theta[None]
    raise AdvlabError("LinearAdversarial needs a Linear model or a stack of them", type(model))


def _terms(context: StepContext) -> tuple[Threat, float]:
    """The ball and xi, once it is clear that the closed form holds for this step."""
    ball, attack = context.ball, context.attack
    xi = attack.xi if isinstance(attack, Surrogate) else 0.0
    inner: Attack = attack.inner if isinstance(attack, Surrogate) else attack
    simple = isinstance(inner, Exact) or (isinstance(inner, FGM) and inner.cutoff == 0)
    if isinstance(inner, Identity):
        ball, simple = Ball(norm="l2", radius=0.0), True
    known = (Ball("l2", ball.radius), Ball("linf", ball.radius))
    if context.loss is not squared or ball not in known:
        raise AdvlabError(
            "LinearAdversarial has a closed form for the squared loss in l2 or linf balls, no box",
            f"{context.loss} in {ball}",
            "use Adversarial() instead",
        )
    if not simple:
        raise AdvlabError(
            "LinearAdversarial has a closed form for Exact, FGM, and Surrogate over them",
            attack,
            "use Adversarial() instead",
        )
    return ball, xi
