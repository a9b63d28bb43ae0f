"""Adversarial training of a two-layer network: the reduced engine against plain PyTorch.

The plain way is what one would write first: two nn.Linear layers in all d dimensions, autograd for
each of 20 PGD steps and for the update, torch.optim.SGD. The reduced way is what the figures of the
benign paper run: the same data and the same start, rotated into the span that training can reach,
then `TwoLayerAdversarial`. Both must have the same losses. The rotation happens once a training and
is timed by itself; the figures do not even need it (`reduce.law` draws the rotated problem).

    python -m benchmarks.two_layer
"""

import json
import time
from copy import deepcopy

import torch
from torch import nn

from advlab.attacks import PGD
from advlab.core.randomness import generators
from advlab.models import Stack, TwoLayer
from advlab.papers.benign.data import NoisyMixture
from advlab.papers.benign.reductions import TwoLayerAdversarial, two_layer_training
from advlab.reductions import Subspace
from advlab.threats import Ball
from advlab.training import fit

from .timing import interleaved

N, RATIO, MU, LR = 100, 0.1, 5.0, 0.1
ALPHA = RATIO * MU
BALL = Ball(norm="l2", radius=ALPHA)
ATTACK = PGD(steps=20, step_size=0.2, random_start=False, jump=False)
CLOSE = 1e-4


def problem(d: int, width: int, replicates: int) -> tuple[torch.Tensor, torch.Tensor, Stack]:
    rngs = generators("benchmark", d, width, seeds=range(replicates))
    data = NoisyMixture(n=N, d=d, mu_norm=MU, beta=0.1).sample_stack(rngs)
    stack = Stack.draw(
        lambda rng: TwoLayer.draw(d, width, "relu", rng, init="torch", train_top=True, bias=True),
        rngs,
    )
    return data.x.float(), data.y.float(), stack.float()


def plain(x: torch.Tensor, y: torch.Tensor, stack: Stack, steps: int) -> torch.Tensor:
    """Losses (steps, R) of one network after the other."""
    runs = []
    for r in range(stack.replicates):
        start = stack.replicate(r).state_dict()
        width, d = start["weight"].shape
        net = nn.Sequential(nn.Linear(d, width), nn.ReLU(), nn.Linear(width, 1))
        net[0].load_state_dict({"weight": start["weight"], "bias": start["bias"]})
        net[2].load_state_dict({"weight": start["top"][None], "bias": start["top_bias"][None]})
        runs.append(_train(net, x[r], y[r], steps))
    return torch.stack(runs, 1)


def _train(net: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int) -> torch.Tensor:
    optimizer = torch.optim.SGD(net.parameters(), lr=LR)
    losses = []
    for _ in range(steps):
        worst = _pgd(net, x, y)
        optimizer.zero_grad()
        loss = _loss(net, worst, y).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def _pgd(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The worst of 20 steps, as `ATTACK` has it."""
    worst, highest, moved = x, torch.full_like(y, -1), torch.zeros_like(x)
    for _ in range(20):
        point = (x + moved).requires_grad_()
        loss = _loss(net, point, y)
        (grad,) = torch.autograd.grad(loss.sum(), point)
        worst, highest = _worse(point, loss, worst, highest)
        moved = moved + ALPHA / 5 * grad / grad.norm(dim=1, keepdim=True)
        moved = moved * (ALPHA / moved.norm(dim=1, keepdim=True)).clamp(max=1)
    with torch.no_grad():
        return _worse(x + moved, _loss(net, x + moved, y), worst, highest)[0]


def _worse(point, loss, worst, highest) -> tuple[torch.Tensor, torch.Tensor]:
    point, loss = point.detach(), loss.detach()
    worse = loss > highest
    return torch.where(worse[:, None], point, worst), torch.where(worse, loss, highest)


def _loss(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.softplus(-y * net(x)[:, 0])


def rotated(x: torch.Tensor, stack: Stack) -> tuple[torch.Tensor, list[TwoLayer]]:
    """The problem in the span of inputs and weights."""
    weight = stack.get_parameter("weight").detach()
    space = Subspace.of(torch.cat([x, weight], 1))
    starts = [stack.replicate(r).state_dict() for r in range(len(x))]
    nets = [
        TwoLayer(w, one["top"], "relu", one["bias"], one["top_bias"], init="torch", train_top=True)
        for w, one in zip(space.into(weight), starts, strict=True)
    ]
    return space.into(x), nets


def reduced(x: torch.Tensor, y: torch.Tensor, nets: list[TwoLayer], steps: int) -> torch.Tensor:
    run = fit(
        Stack(nets), x, y, steps=steps - 1, lr=LR,
        objective=TwoLayerAdversarial(loss="logistic", ball=BALL, attack=ATTACK),
    )  # fmt: skip
    return run.log.losses()


def compare(
    name: str, dims: tuple[int, ...], width: int, replicates: int, steps: int, close=CLOSE, **more
) -> None:
    problems = {d: problem(d, width, replicates) for d in dims}
    start = time.perf_counter()
    small = {d: rotated(x, stack) for d, (x, _, stack) in problems.items()}
    rotation = time.perf_counter() - start
    d = dims[-1]
    x, y, stack = problems[d]
    ways = {"plain": lambda: plain(x, y, stack, steps)} | {
        f"reduced, d = {at}": lambda at=at: reduced(
            small[at][0], problems[at][1], small[at][1], steps
        )
        for at in dims
    }
    apart = float((ways["plain"]() - ways[f"reduced, d = {d}"]()).abs().max())
    if apart > close:
        raise SystemExit(f"{name}: the losses disagree by {apart}")
    seconds = interleaved(ways, repeats=5)
    mine = seconds[f"reduced, d = {d}"]
    report = {
        "benchmark": name,
        "ratio": round(seconds["plain"] / mine, 1),
        **more,
        "seconds a step": {way: round(value / steps, 4) for way, value in seconds.items()},
        "steps": steps,
        "rotation, seconds": round(rotation, 2),
        "largest difference of losses": apart,
        "threads": torch.get_num_threads(),
    }
    if len(dims) > 1:
        report["d = 18000 against 2000"] = round(mine / seconds[f"reduced, d = {dims[0]}"], 2)
    print(json.dumps(report), flush=True)


def few_coordinates(dims: tuple[int, ...] = (25, 100, 289), steps: int = 5) -> None:
    """PGD in the coordinates of the inputs against products with the Gram matrix, in float64."""
    chosen = two_layer_training.few_inputs
    try:
        for d in dims:
            x, y, stack = (part.double() for part in problem(d, 1000, 1))
            nets = [stack.replicate(0)]

            def run(few: bool, x=x, y=y, nets=nets) -> torch.Tensor:
                two_layer_training.few_inputs = lambda _: few
                return reduced(x, y, [deepcopy(net) for net in nets], steps)

            if float((run(True) - run(False)).abs().max()) > 1e-6:
                raise SystemExit(f"d = {d}: the two ways disagree")
            seconds = interleaved({"inputs": lambda: run(True), "Gram": lambda: run(False)})
            ratio = round(seconds["inputs"] / seconds["Gram"], 2)
            print(json.dumps({"benchmark": f"PGD by inputs, d = {d}", "time": ratio}), flush=True)
    finally:
        two_layer_training.few_inputs = chosen


def main() -> None:
    few_coordinates()
    compare("two-layer, width 1000, PGD-20, d = 18000", (2000, 18000), 1000, 1, 10, target=25)
    compare("stack of 8 at width 100, PGD-20, d = 2000", (2000,), 100, 8, 5, close=1e-3)


if __name__ == "__main__":
    main()
