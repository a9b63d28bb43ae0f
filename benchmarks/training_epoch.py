"""An epoch of PGD-10 training by `advlab.fit` against a loop written by hand, in CPU seconds.

Both train the same small CNN on the same MNIST images with Adam, attack in eval mode from a random
start, and take a step on the points found. The loop by hand is what one would write first: it keeps
the last point. `fit` is timed with the worst point seen, its default, and with the last.

    ADVLAB_DATA=/path/to/data python -m benchmarks.training_epoch
"""

import json
import time
from collections.abc import Callable
from statistics import median
from typing import Literal

import torch
import torch.nn.functional as F

import advlab
from advlab.attacks import PGD
from advlab.core.randomness import generator
from advlab.data import Arrays, mnist
from advlab.models import SmallCNN
from advlab.threats import Ball

ROWS, BATCH, RATE, RADIUS, STEPS, SHARE, TARGET = 2560, 128, 3e-3, 0.2, 10, 0.25, 1.02
BALL = Ball("linf", RADIUS, box=(0, 1))


def by_fit(data: Arrays, keep: Literal["worst", "last"]) -> None:
    """One epoch by the library."""
    advlab.fit(
        SmallCNN.draw(generator("epoch"), width=8),
        data.x,
        data.y,
        steps=len(data.x) // BATCH,
        lr=RATE,
        batch=BATCH,
        optimizer=torch.optim.Adam,
        ball=BALL,
        attack=PGD(steps=STEPS, step_size=SHARE, jump=False, keep=keep),
    )


def by_hand(data: Arrays) -> None:
    """One epoch by a plain loop."""
    model = SmallCNN.draw(generator("epoch"), width=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for rows in torch.randperm(len(data.x)).split(BATCH):
        x, y = data.x[rows], data.y[rows]
        model.eval()
        moved = (x + torch.empty_like(x).uniform_(-RADIUS, RADIUS)).clamp(0, 1)
        for _ in range(STEPS):
            moved.requires_grad_()
            (grad,) = torch.autograd.grad(F.cross_entropy(model(moved), y), moved)
            with torch.no_grad():
                moved = moved + SHARE * RADIUS * grad.sign()
                moved = torch.min(torch.max(moved, x - RADIUS), x + RADIUS).clamp(0, 1)
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(moved.detach()), y).backward()
        optimizer.step()


def main(repeats: int = 7) -> None:
    torch.set_num_threads(1)
    data = mnist.load(n=ROWS)
    calls: dict[str, Callable[[], None]] = {
        "fit": lambda: by_fit(data, "worst"),
        "fit, last point": lambda: by_fit(data, "last"),
        "by hand": lambda: by_hand(data),
    }
    cpu: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            begun = time.process_time()
            call()
            cpu[name].append(time.process_time() - begun)
    seconds = {name: median(values) for name, values in cpu.items()}
    report = {
        "benchmark": f"an epoch of PGD-{STEPS} training, {ROWS} images",
        "CPU seconds": {name: round(value, 3) for name, value in seconds.items()},
        "x the loop by hand": {k: round(v / seconds["by hand"], 3) for k, v in seconds.items()},
        "target": TARGET,
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
