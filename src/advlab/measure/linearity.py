"""How nearly linear a network is in its weights around its start (convergence paper, section A).

Near-linearity (Lemmas A.5, A.6) is what makes the losses of wide networks nearly convex in B(R).
Lemma A.4 carries it from one input to all: moving the input is moving the first hidden layer.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from ..errors import AdvlabError
from ..losses import PerExample, resolve
from ..models import DeepReLU
from ..training import Projection

FAR = 1e6
"""Steps this many times longer than the ball's radius are projected on its boundary."""


def lin_residual(
    model: nn.Module,
    x: Float[Tensor, "batch *shape"],
    move: Mapping[str, Tensor],
) -> float:
    """max over rows x of |f(W0 + move, x) - f(W0, x) - <grad f(W0, x), move>|.

    W0 are the model's own weights, `move` a change of some of its parameters by name. On the
    boundary of B(R) the convergence paper's Lemma A.6 bounds it by O(m^(-1/6) R^(4/3) H^(5/2)
    sqrt(log m)).
    """
    named = dict(model.named_parameters())
    if unknown := sorted(set(move) - set(named)):
        raise AdvlabError("moves of the model's own parameters", ", ".join(unknown))
    start = {name: named[name].detach().requires_grad_() for name in move}
    f = functional_call(model, start, (x,))
    slope = derivative_along(f, [start[name] for name in move], [move[name] for name in move])
    with torch.no_grad():
        moved = functional_call(model, {name: start[name] + move[name] for name in move}, (x,))
        return float((moved - f - slope).abs().max())


def derivative_along(f: Tensor, weights: list[Tensor], moves: list[Tensor]) -> Tensor:
    """The derivative of every entry of f along a move of the weights.

    A gradient of a gradient: u -> sum_i u_i grad f_i is linear, and its slope in u is the answer.
    (Forward mode would do, but torch's own warns as it starts.)
    """
    u = torch.ones_like(f, requires_grad=True)
    grads = torch.autograd.grad(f, weights, u, create_graph=True)
    total = torch.stack([(g * move).sum() for g, move in zip(grads, moves, strict=True)]).sum()
    return torch.autograd.grad(total, u)[0]


def descent_to_boundary(
    model: nn.Module,
    x: Float[Tensor, "batch *shape"],
    y: Tensor,
    ball: Projection,
    loss: str | PerExample = "pseudo_huber",
) -> dict[str, Tensor]:
    """W1 - W0 for the W1 on the boundary of `ball` that lies from W0 along the falling mean loss.

    In a product of balls (LayerBalls) W1 is on the boundary of each.
    """
    named = {name: value for name, value in model.named_parameters() if value.requires_grad}
    value = resolve(loss)(model(x), y).mean()
    grads = torch.autograd.grad(value, list(named.values()))
    shortest = min(float(grad.norm()) for grad in grads)
    if shortest == 0:
        raise AdvlabError(
            "a loss with a gradient in every layer", "a gradient of zero", "draw other weights"
        )
    steps = [(-FAR * ball.radius / shortest * grad)[None] for grad in grads]
    moves = [step[0] * factor for step, factor in zip(steps, ball.factors(steps), strict=True)]
    return dict(zip(named, moves, strict=True))


@dataclass(frozen=True)
class WeightMove:
    """A first hidden layer that does to x what the network's own does to another input."""

    weight: Float[Tensor, "m m"]
    """W1~."""
    norm: float
    """||W1~ - W1||_F."""
    bound: float
    """||W1||_2 ||A||_2 ||x - x'|| / ||A x||, which the norm never exceeds."""


def as_weight_move(
    model: DeepReLU, x: Float[Tensor, " d"], other: Float[Tensor, " d"]
) -> WeightMove:
    """Lemma A.4, an identity: with W1~ in place of W1 the network has at x the pre-activations and
    signs that it has at `other`, in every layer. Here

        W1~ = W1 + W1 (A other - A x) (A x)^T / ||A x||^2.
    """
    first, start, moved = model.hidden[0].detach(), model.bottom @ x, model.bottom @ other
    change = torch.outer(first @ (moved - start), start) / start.dot(start)
    lengths = torch.linalg.matrix_norm(first, 2) * torch.linalg.matrix_norm(model.bottom, 2)
    bound = lengths * (x - other).norm() / start.norm()
    return WeightMove(first + change, float(change.norm()), float(bound))
