"""The patch network of the CGRO paper in closed coordinates against training in d dimensions.

The plain way is PyTorch with autograd: clean and GTA examples, the mixed loss, torch.optim.SGD. The
closed dynamics carry u, v and the Gram matrix of the noise. Both must have the same losses.

    python -m benchmarks.patches
"""

import json
import time

import torch
import torch.nn.functional as F

from advlab.core.randomness import generator, generators
from advlab.papers.cgro.data import Patches
from advlab.papers.cgro.reductions.patch_dynamics import trajectory
from advlab.papers.cgro.reductions.patch_law import draw_stack, of_points

from .timing import interleaved

D, N, FILTERS, LAM, ETA, TARGET, CLOSE = 16_000, 20, 10, 0.5, 0.005, 100.0, 1e-10


def plain(x, attacked, y, weight, steps: int) -> torch.Tensor:
    """The objective before each of `steps` steps, and after the last."""
    w = weight.clone().requires_grad_()
    optimizer = torch.optim.SGD([w], lr=ETA)
    losses = []
    for step in range(steps + 1):
        f, g = (((one @ w.T) ** 3).sum((1, 2)) for one in (x, attacked))
        loss = ((1 - LAM) * F.softplus(-y * f) + LAM * F.softplus(-y * g)).mean()
        losses.append(loss.detach())
        if step < steps:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return torch.stack(losses)


def closed(problem, steps: int) -> torch.Tensor:
    return torch.stack([state.loss[0] for state in trajectory(problem, LAM, ETA, range(steps + 1))])


def fast(problem, steps: int) -> object:
    """Only the last state: what an experiment asks for between its measurements."""
    return list(trajectory(problem, LAM, ETA, {steps}))


def main(steps: int = 40) -> None:
    data = Patches.scaled(n=N, d=D)
    points = data.sample(generator("benchmark", "data"))
    weight = torch.randn(FILTERS, D, generator=generator("benchmark", "net"), dtype=torch.float64)
    weight = weight / D**0.5
    problem, attacked = of_points(data, points, weight), data.gta(points)
    losses = plain(points.x, attacked, points.y, weight, steps), closed(problem, steps)
    apart = float((losses[0] - losses[1]).abs().max())
    if apart > CLOSE:
        raise SystemExit(f"the losses disagree by {apart}")
    # Many more steps of the fast side, so that both clocks run for a while.
    more = 100
    seconds = interleaved(
        {
            "plain": lambda: plain(points.x, attacked, points.y, weight, steps),
            "closed": lambda: fast(problem, more * steps),
        },
        5,
    )
    each = {"plain": seconds["plain"] / steps, "closed": seconds["closed"] / (more * steps)}
    report = {
        "benchmark": f"patch network, d = {D}, N = {N}, one step",
        "ratio": round(each["plain"] / each["closed"], 1),
        "target": TARGET,
        "seconds a step": {way: round(value, 6) for way, value in each.items()},
        "largest difference of losses": apart,
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(report), flush=True)
    _stack()


def _stack(seeds: int = 20, steps: int = 40_000) -> None:
    """Setting A of the paper's experiments, all seeds at once."""
    problem = draw_stack(
        Patches.scaled(n=N, d=1000),
        FILTERS,
        1000**-0.5,
        generators("benchmark", seeds=range(seeds)),
    )
    start = time.perf_counter()
    list(trajectory(problem, LAM, 0.02, {steps}))
    report = {
        "benchmark": f"{seeds} seeds of setting A as a stack, {steps} steps",
        "seconds": round(time.perf_counter() - start, 1),
        "target": "60 s",
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
