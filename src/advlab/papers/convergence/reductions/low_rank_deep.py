"""Projected adversarial training of deep networks without ever making a trained weight matrix.

A step of gradient descent moves W_h by n outer products b_i x_{h-1,i}', b the gradient in the
pre-activations. So W_h = W0_h + sum_j c_j b_j x_j' with n columns more per step, and projecting on
B(R), Frobenius balls around the start, multiplies all c_j of a layer by one number. The start is
read and never written, and runs from one start (other radii R) share each product with it. The
first hidden layer sees x_0 = A x only, so W0_1 A (m, d) stands for it. The numbers are those of
`fit` with `LayerBalls` (tests/papers/convergence/test_low_rank_deep.py).
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ....attacks import Attack
from ....core.errors import AdvlabError
from ....core.randomness import Rng
from ....losses import ModelLoss, PerExample, value_and_slope
from ....threats import Threat
from ..models import DeepReLU


class LowRankDeep:
    """Runs of deep networks, each its start plus outer products; call it on rows of all runs.

    Args:
        starts: S networks of one shape.
        radii: R of each run of a start. There are S len(radii) runs, those of a start together.

    Example:
        from advlab.attacks import PGD
        from advlab.core.randomness import generators
        from advlab.losses import pseudo_huber
        from advlab.papers.convergence.models import DeepReLU
        from advlab.papers.convergence.reductions import LowRankDeep, descend
        from advlab.threats import Cap
        runs = LowRankDeep([DeepReLU.draw(3, 4096, 2, rng)], radii=(1.0, 3.0))
        x, y = x.expand(2, *x.shape), y.expand(2, *y.shape)  # one sample for both runs
        losses = descend(runs, x, y, loss=pseudo_huber, attack=PGD(), threat=Cap(0.15), rate=1e-5,
                         steps=50, rng=generators("attack", seeds=range(2)))
    """

    def __init__(self, starts: Sequence[DeepReLU], radii: Sequence[float]):
        if not starts or not radii or len({tuple(w.shape for w in s.hidden) for s in starts}) > 1:
            raise AdvlabError(
                "starts of one shape and at least one radius", f"{len(starts)} and {len(radii)}"
            )
        self.per_start, runs = len(radii), len(starts) * len(radii)
        self.top = torch.stack([net.top for net in starts])
        bottom = torch.stack([net.bottom for net in starts])
        with torch.no_grad():
            first = torch.stack([net.hidden[0] @ net.bottom for net in starts])
            rest = [
                torch.stack([net.hidden[h].detach() for net in starts])
                for h in range(1, len(starts[0].hidden))
            ]
        self.width = self.top.shape[1]
        limit = torch.tensor(radii, dtype=torch.float64).repeat(len(starts)) / math.sqrt(self.width)
        # x_0'x_0 = x'(A'A)x: in the first layer a move is known by the inputs it came from.
        gram = (bottom.mT @ bottom).repeat_interleave(self.per_start, 0)
        self.layers = [_Layer(first, limit, gram), *(_Layer(w, limit) for w in rest)]
        self.replicates = runs

    def __call__(self, x: Float[Tensor, "rows d"]) -> Float[Tensor, " rows"]:
        state = x.reshape(self.replicates, -1, x.shape[-1])
        for layer in self.layers:
            state = layer.forward(state).relu()
        return self._output(state).flatten()

    def _output(self, state: Float[Tensor, "B n m"]) -> Float[Tensor, "B n"]:
        blocks = state.reshape(len(self.top), -1, self.width)
        return (blocks @ self.top[:, :, None]).reshape(state.shape[:2])

    def tangents(
        self, x: Float[Tensor, "rows d"]
    ) -> tuple[Float[Tensor, "B n"], list[tuple[Tensor, Tensor]]]:
        """f, and for each layer (b, x_{h-1}) with grad_h f = b x_{h-1}'; x itself in the first."""
        state, inputs, on = x.reshape(self.replicates, -1, x.shape[-1]), [], []
        for layer in self.layers:
            inputs.append(state)
            z = layer.forward(state)
            on.append(z > 0)
            state = z.relu()
        back = self.top.repeat_interleave(self.per_start, 0)[:, None] * on[-1]
        backs = [back]
        for h in range(len(self.layers) - 1, 0, -1):
            back = self.layers[h].backward(back) * on[h - 1]
            backs.append(back)
        return self._output(state), list(zip(backs[::-1], inputs, strict=True))

    def tangent_grams(self, tangents: list[tuple[Tensor, Tensor]]) -> Float[Tensor, "H B n n"]:
        """<grad_h f(x_i), grad_h f(x_j)> of each layer: the empirical tangent kernel in parts."""
        return torch.stack(
            [
                layer.inner(back.mT, state.mT, back.mT, state.mT)
                for layer, (back, state) in zip(self.layers, tangents, strict=True)
            ]
        )

    def move(
        self, sizes: Sequence[Float[Tensor, "B n"]], tangents: list[tuple[Tensor, Tensor]]
    ) -> None:
        """Add sum_i size_i grad_h f(x_i) to each layer and project on B(R)."""
        for layer, size, (back, state) in zip(self.layers, sizes, tangents, strict=True):
            layer.add(size, back.mT, state.mT)

    @property
    def displacement(self) -> Float[Tensor, "H B"]:
        """||W_h - W0_h||_F sqrt(m) of each layer, which R bounds."""
        return math.sqrt(self.width) * torch.stack([layer.norm() for layer in self.layers])


class _Layer:
    """W0 + left diag(weights) right' of each run; `gram`: of right's columns."""

    def __init__(
        self,
        start: Float[Tensor, "S m k"],
        limit: Float[Tensor, " B"],
        gram: Float[Tensor, "B k k"] | None = None,
    ):
        self.start, self.limit, self.gram = start, limit, gram
        runs, like = len(limit), start
        self.left = like.new_empty(runs, start.shape[1], 0)
        self.right = like.new_empty(runs, start.shape[2], 0)
        self.weights = torch.empty(runs, 0, dtype=torch.float64)
        self.products = torch.empty(runs, 0, 0, dtype=torch.float64)

    def forward(self, state: Float[Tensor, "B n k"]) -> Float[Tensor, "B n m"]:
        z = self._from_start(state, self.start.mT)
        seen = self._dual(state) @ self.right
        return z + (seen * self.weights[:, None].to(seen)) @ self.left.mT

    def backward(self, back: Float[Tensor, "B n m"]) -> Float[Tensor, "B n k"]:
        seen = (back @ self.left) * self.weights[:, None].to(back)
        return self._from_start(back, self.start) + seen @ self.right.mT

    def _from_start(self, rows: Tensor, matrix: Tensor) -> Tensor:
        blocks = rows.reshape(len(self.start), -1, rows.shape[-1]) @ matrix
        return blocks.reshape(*rows.shape[:2], -1)

    def _dual(self, state: Tensor) -> Tensor:
        return state if self.gram is None else state @ self.gram

    def add(self, size: Tensor, left: Float[Tensor, "B m n"], right: Tensor) -> None:
        self.left = torch.cat([self.left, left], 2)
        self.right = torch.cat([self.right, right], 2)
        self.weights = torch.cat([self.weights, size.double()], 1)
        new = self.inner(self.left, self.right, left, right)
        old = self.products.shape[1]
        self.products = torch.cat([torch.cat([self.products, new[:, :old]], 2), new.mT], 1)
        self.weights = self.weights * (self.limit / self.norm()).clamp(max=1.0)[:, None]

    def inner(self, left: Tensor, right: Tensor, other: Tensor, others: Tensor) -> Tensor:
        """<b_i x_i', b_j x_j'> = (b_i'b_j)(x_i'x_j), in float64."""
        return (left.mT @ other).double() * (right.mT @ self._dual(others.mT).mT).double()

    def norm(self) -> Float[Tensor, " B"]:
        w = self.weights
        square = (w[:, None] @ self.products @ w[:, :, None])[:, 0, 0]
        return square.clamp(min=torch.finfo(torch.float64).tiny).sqrt()


def descend(
    runs: LowRankDeep,
    x: Float[Tensor, "B n d"],
    y: Float[Tensor, "B n"],
    *,
    loss: PerExample,
    attack: Attack,
    threat: Threat,
    rate: float,
    steps: int,
    rng: Rng,
) -> Float[Tensor, "steps_and_1 B"]:
    """L_A(W_t) for t = 0, ..., T of W_{t+1} = P(W_t - alpha grad L_A(W_t)), P on B(R).

    Args:
        runs: the networks, which are trained.
        x: inputs of each run. y: their labels.
        loss: of one example.
        attack: how inputs are moved. threat: where to.
        rate: alpha. steps: T.
        rng: one generator per run, for the attack.
    """
    points, labels, n = x.flatten(0, 1), y.flatten(), y.shape[1]
    losses = []
    for step in range(steps + 1):
        found = attack(ModelLoss(runs, labels, loss), points, threat, rng=rng).x
        with torch.no_grad():
            f, tangents = runs.tangents(found)
            value, slope = value_and_slope(loss, f.flatten(), labels)
            losses.append(value.reshape(y.shape).mean(1))
            if step < steps:
                size = -rate / n * slope.reshape(y.shape)
                runs.move([size] * len(tangents), tangents)
    return torch.stack(losses)
