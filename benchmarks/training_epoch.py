"""An epoch of PGD-10 training by `advlab.train` against three loops, in CPU seconds on one thread.

- by hand, best: channels last, `autograd.grad` in the inputs alone;
- by hand, usual: channels first, `.backward()`, which also fills the gradients of the weights;
- torchattacks: its PGD, else as usual. It is skipped where it is not installed.

All train the same network on the same images by SGD, attack in eval mode from a random start, keep
the last point, and take a step on it. `train` runs its recipe "pgd" with ten steps. The clock runs
from the first batch of an epoch to its last, so set-up and the errors that are measured after an
epoch are left out for all. Contenders take turns, each in a process of its own, so that the memory
that one leaves neither helps nor hurts another; medians.

    ADVLAB_DATA=/path/to/data python -m benchmarks.training_epoch
"""

import importlib.util
import json
import multiprocessing
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from advlab.core.randomness import Rng, generator
from advlab.data import Arrays, cifar10, mnist
from advlab.models import ResNet9, SmallCNN
from advlab.models.normalised import Normalised
from advlab.threats import Ball
from advlab.training import recipe, train

BATCH, BATCHES, STEPS, SHARE, RATE = 128, 5, 10, 0.25, 0.01
TARGETS = {"by hand, best": 1.0, "by hand, usual": 0.6, "torchattacks": 0.6}


class Clock:
    """Is handed each batch; knows the CPU seconds from the first to the last."""

    def __init__(self):
        self.seen: list[float] = []

    def __call__(self, x: Tensor, rng: Rng | None = None) -> Tensor:
        self.seen.append(time.process_time())
        return x

    @property
    def seconds(self) -> float:
        return self.seen[BATCHES - 1] - self.seen[0]


def by_train(model: nn.Module, data: Arrays, radius: float) -> float:
    """An epoch by the library."""
    clock = Clock()
    ball = Ball("linf", radius, box=(0, 1))
    ten = recipe("pgd", attack={"steps": STEPS, "step_size": SHARE}, lr=RATE, schedule="constant")
    train(
        model, data.x, data.y, recipe=ten, ball=ball, epochs=1, batch=BATCH, augment=clock,
        progress=False,
    )  # fmt: skip
    return clock.seconds


def pgd_best(model: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """Ten steps with gradients in the inputs alone."""
    moved = (x + torch.empty_like(x).uniform_(-radius, radius)).clamp(0, 1)
    for _ in range(STEPS):
        moved.requires_grad_()
        (grad,) = torch.autograd.grad(F.cross_entropy(model(moved), y), moved)
        with torch.no_grad():
            moved = moved + SHARE * radius * grad.sign()
            moved = torch.min(torch.max(moved, x - radius), x + radius).clamp(0, 1)
    return moved.detach()


def pgd_usual(model: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """Ten steps as most code has them."""
    delta = torch.empty_like(x).uniform_(-radius, radius)
    delta.data = (x + delta.data).clamp(0, 1) - x
    for _ in range(STEPS):
        delta.requires_grad_()
        delta.grad = None
        F.cross_entropy(model(x + delta), y).backward()
        uphill: Tensor = delta.grad  # type: ignore[assignment]
        moved = delta.data + SHARE * radius * uphill.sign()
        delta.data = (x + moved.clamp(-radius, radius)).clamp(0, 1) - x
    return (x + delta).detach()


def pgd_torchattacks(model: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """Ten steps of its PGD."""
    import torchattacks  # type: ignore[import-not-found]

    return torchattacks.PGD(model, eps=radius, alpha=SHARE * radius, steps=STEPS)(x, y)


def by_hand(
    model: nn.Module,
    data: Arrays,
    attack: Callable[[nn.Module, Tensor, Tensor], Tensor],
    layout: torch.memory_format,
) -> float:
    """An epoch by a plain loop."""
    clock = Clock()
    model.to(memory_format=layout)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=2e-4)
    for rows in torch.randperm(len(data.x)).split(BATCH):
        x, y = clock(data.x[rows]).to(memory_format=layout), data.y[rows]
        if len(clock.seen) == BATCHES:
            break
        model.eval()
        moved = attack(model, x, y)
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(moved), y).backward()
        optimizer.step()
    return clock.seconds


def epoch(network: str, contender: str) -> float:
    """CPU seconds per step of an epoch, in the worker of the contender."""
    torch.set_num_threads(1)
    make, load, radius = NETWORKS[network]
    data = load(n=BATCH * BATCHES)
    last, first = torch.channels_last, torch.contiguous_format
    if contender == "train":
        seconds = by_train(make(), data, radius)
    elif contender == "by hand, best":
        seconds = by_hand(make(), data, lambda m, x, y: pgd_best(m, x, y, radius), last)
    elif contender == "by hand, usual":
        seconds = by_hand(make(), data, lambda m, x, y: pgd_usual(m, x, y, radius), first)
    else:
        seconds = by_hand(make(), data, lambda m, x, y: pgd_torchattacks(m, x, y, radius), first)
    return seconds / (BATCHES - 1)


def main(repeats: int = 5) -> None:
    names = ["train", *TARGETS]
    if importlib.util.find_spec("torchattacks") is None:
        print("torchattacks is not installed: its loop is skipped", flush=True)
        names.remove("torchattacks")
    with ExitStack() as stack:
        spawn = multiprocessing.get_context("spawn")
        workers = {name: stack.enter_context(spawn.Pool(1)) for name in names}
        for network in NETWORKS:
            cpu: dict[str, list[float]] = {name: [] for name in names}
            for _ in range(repeats):
                for name, worker in workers.items():
                    cpu[name].append(worker.apply(epoch, (network, name)))
            seconds = {name: median(values) for name, values in cpu.items()}
            ratios = {one: seconds["train"] / seconds[one] for one in TARGETS if one in seconds}
            report = {
                "benchmark": f"a step of PGD-{STEPS} training, batch {BATCH}: {network}",
                "CPU seconds": {name: round(value, 3) for name, value in seconds.items()},
                "train against": {one: round(value, 3) for one, value in ratios.items()},
                "targets": {one: TARGETS[one] for one in ratios},
            }
            print(json.dumps(report), flush=True)


def _small() -> nn.Module:
    return Normalised(SmallCNN.draw(generator("epoch"), width=16), [0.13], [0.31])


def _residual() -> nn.Module:
    net = ResNet9.draw(generator("epoch"), width=12)
    return Normalised(net, [0.49, 0.48, 0.45], [0.25, 0.24, 0.26])


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[..., Arrays], float]] = {
    "SmallCNN, width 16, MNIST": (_small, mnist.load, 0.2),
    "ResNet9, width 12, CIFAR-10": (_residual, cifar10.load, 8 / 255),
}


if __name__ == "__main__":
    main()
