"""Twenty seeds of A1 and A3 as one stack against a plain PyTorch loop over the seeds.

The plain way is what one would write first: for each seed a network, autograd for the attack and
for the step. The stack is what the experiments run. Both attack with ten steps of PGD on the cap
from the clean input and keep the worst point, and both must have the same losses.

    python -m benchmarks.any_attack
"""

import json
import math

import torch

from advlab.papers.convergence.experiments._parts.two_layer_runs import Case, train

from .timing import interleaved

NAME = "benchmark"
WIDTHS, SEEDS, TARGET, CLOSE = (64, 256, 1024, 4096), 20, 5.0, 1e-5


def outputs(w, a, x):
    z = x @ w.T
    return (z.sin() + z.cos()) @ a / math.sqrt(len(a))


def losses(f, y):
    return (1 + (f - y) ** 2).sqrt() - 1


def to_cap(z, x, delta):
    """The nearest point of the cap of x."""
    z = z / z.norm(dim=1, keepdim=True)
    c, least = (z * x).sum(1, keepdim=True), 1 - delta**2 / 2
    side = z - c * x
    rim = least * x + math.sqrt(1 - least**2) * side / side.norm(dim=1, keepdim=True)
    return torch.where(c < least, rim, z)


def worst(w, a, x, y, delta, steps=10):
    point, best, value = x, x, None
    for _ in range(steps):
        leaf = point.detach().requires_grad_()
        here = losses(outputs(w, a, leaf), y)
        (g,) = torch.autograd.grad(here.sum(), leaf)
        here = here.detach()
        worse = here > (here - 1 if value is None else value)
        best = torch.where(worse[:, None], point, best)
        value = here if value is None else torch.maximum(here, value)
        size = g.norm(dim=1, keepdim=True)
        g = torch.where(size > 0, g / size.clamp(min=1e-30), 0)
        point = to_cap(point + 2.5 * delta / steps * g, x, delta)
    with torch.no_grad():
        here = losses(outputs(w, a, point), y)
    return torch.where((here > value)[:, None], point, best)


def plain(case: Case, name: str = NAME) -> torch.Tensor:
    """Seed by seed; the start is exactly zero, where there is nothing to attack."""
    data, targets = case.data(name)
    stack, found = case.networks(name), []
    for seed, (x, y) in enumerate(zip(data, targets, strict=True)):
        net = stack.replicate(seed)
        w, a = net.weight.detach().requires_grad_(), net.top
        found.append([])
        for step in range(case.steps):
            inputs = x if step == 0 else worst(w.detach(), a, x, y, case.radius)
            loss = losses(outputs(w, a, inputs), y).mean()
            (grad,) = torch.autograd.grad(loss, w)
            with torch.no_grad():
                w -= case.rate * grad
            found[-1].append(loss.detach())
    return torch.tensor(found).T


def stacked(case: Case, name: str = NAME) -> torch.Tensor:
    return train(case, name).log.losses()


def main(steps: int = 20, repeats: int = 3) -> None:
    total = {"plain": 0.0, "stack": 0.0}
    for width in WIDTHS:
        case = Case(width=width, steps=steps, replicates=SEEDS)
        apart = float((plain(case) - stacked(case)[:steps]).abs().max())
        if apart > CLOSE:
            raise SystemExit(f"width {width}: the losses disagree by {apart}")
        seconds = interleaved(
            {"plain": lambda case=case: plain(case), "stack": lambda case=case: stacked(case)},
            repeats,
        )
        for way, value in seconds.items():
            total[way] += value
        _tell(f"PGD-10 on a cap, {SEEDS} seeds, width {width}", seconds, steps, apart)
    _tell(f"the same, widths {WIDTHS}", total, steps, None, target=TARGET)


def _tell(name: str, seconds: dict, steps: int, apart: float | None, **more) -> None:
    report = {
        "benchmark": name,
        "ratio": round(seconds["plain"] / seconds["stack"], 1),
        **more,
        "seconds a step": {way: round(value / steps, 4) for way, value in seconds.items()},
        "largest difference of losses": apart,
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
