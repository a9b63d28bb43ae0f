"""How nearly linear a network is in its weights around its start (convergence paper, section A).

Near-linearity (Lemmas A.5, A.6) is what makes the losses of wide networks nearly convex in B(R).
Lemma A.4 carries it from one input to all: moving the input is moving the first hidden layer.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from ..core.errors import AdvlabError
from ..losses import PerExample, resolve
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
