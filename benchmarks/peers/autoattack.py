"""The standard ensemble against pyautoattack's: same networks, same images, same budget, one run.

Both get the images in one go and may batch them as they like. Their answers are judged by one rule:
an image is broken if the point returned for it lies in the ball and the box and the network's
largest score there is another class. The two take turns network by network. Seconds are those of
the CPU on one thread, which other work on the machine disturbs least.

    python -m benchmarks.peers.autoattack [SHARE]

SHARE of the images, all by default.
"""

import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from advlab.attacks import AutoAttack
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, margin
from advlab.threats import Ball

from .networks import BOX, examples, network

NEAR, FASTER = 0.3, 0.8
SLACK = 1e-5
"""How far outside a ball a point may lie by rounding, as a share of the radius."""


@dataclass(frozen=True)
class Trial:
    """A network, how many test images, and the ball around each."""

    name: str
    n: int
    ball: Ball


def _trial(name: str, n: int, norm, radius: float) -> Trial:
    return Trial(name, n, Ball(norm=norm, radius=radius, box=BOX))


# Around networks trained on clean images the balls are small: in the usual ones nothing survives,
# and there would be nothing to compare.
TRIALS = (
    _trial("mnist linf", 500, "linf", 0.2),
    _trial("mnist l2", 500, "l2", 1.5),
    _trial("mnist clean", 500, "linf", 0.06),
    _trial("mnist clean", 500, "l2", 0.8),
    _trial("cifar10 linf", 200, "linf", 8 / 255),
    _trial("cifar10 linf", 200, "l2", 0.5),
    _trial("cifar10 clean", 200, "linf", 1 / 255),
    _trial("cifar10 clean", 200, "l2", 0.15),
)


Stages = dict[str, float]
"""Seconds of each part of an ensemble, by the clock on the wall."""


def ours(model: nn.Module, x: Tensor, y: Tensor, ball: Ball) -> tuple[Tensor, Stages]:
    loss = ModelLoss(model, y, margin)
    found, stages = AutoAttack().run(loss, x, ball, rng=generator("peers", "autoattack"))
    return found.x, {stage.name: stage.seconds for stage in stages}


def theirs(model: nn.Module, x: Tensor, y: Tensor, ball: Ball) -> tuple[Tensor, Stages]:
    from pyautoattack import AutoAttack as Reference

    norm = {"linf": "Linf", "l2": "L2"}[ball.norm]
    adversary = Reference(model, norm=norm, eps=ball.radius, seed=0)
    with _Clock(adversary.logger) as clock:
        found = adversary.run_standard_evaluation(x, y, batch_size=len(x))[0]
    return found, clock.stages


class _Clock(logging.Handler):
    """Reads the time off whenever the library says that it is done with a part."""

    def __init__(self, logger: logging.Logger):
        super().__init__(logging.DEBUG)
        self.logger, self.stages, self.last = logger, {}, time.perf_counter()

    def emit(self, record: logging.LogRecord) -> None:
        if "robust accuracy after" in record.getMessage():
            name, now = record.getMessage().split()[3].rstrip(":"), time.perf_counter()
            self.stages[name], self.last = now - self.last, now

    def __enter__(self) -> "_Clock":
        self.logger.setLevel(logging.DEBUG)
        self.logger.propagate = False
        self.logger.addHandler(self)
        return self

    def __exit__(self, *error: object) -> None:
        self.logger.removeHandler(self)


WAYS: dict[str, Callable[[nn.Module, Tensor, Tensor, Ball], tuple[Tensor, Stages]]] = {
    "pyautoattack": theirs,
    "advlab": ours,
}


def survivors(model: nn.Module, x: Tensor, y: Tensor, ball: Ball, found: Tensor) -> Tensor:
    """Rows that are right at x and not broken by a point of the set."""
    with torch.no_grad():
        right, still = model(x).argmax(1) == y, model(found).argmax(1) == y
    return right & (still | ~ball.contains(found, x, slack=SLACK * ball.radius))


def compare(trial: Trial, swapped: bool) -> dict:
    model, test = network(trial.name), examples(trial.name, trial.n)
    seconds, kept, parts = {}, {}, {}
    for name in sorted(WAYS, reverse=swapped):
        start = time.process_time()
        found, stages = WAYS[name](model, test.x, test.y, trial.ball)
        seconds[name] = time.process_time() - start
        parts[name] = {stage: round(value, 1) for stage, value in stages.items()}
        kept[name] = survivors(model, test.x, test.y, trial.ball, found)
    accuracy = {name: 100 * float(rows.double().mean()) for name, rows in kept.items()}
    return {
        "network": trial.name,
        "ball": f"{trial.ball.norm} {trial.ball.radius:.4g}",
        "n": trial.n,
        "robust accuracy": {name: round(value, 2) for name, value in accuracy.items()},
        "difference": round(accuracy["advlab"] - accuracy["pyautoattack"], 2),
        "broken by advlab only": _rows(kept["pyautoattack"] & ~kept["advlab"]),
        "broken by pyautoattack only": _rows(kept["advlab"] & ~kept["pyautoattack"]),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "time ratio": round(seconds["advlab"] / seconds["pyautoattack"], 2),
        "parts": parts,
    }


def _rows(which: Tensor) -> list[int]:
    return which.nonzero()[:, 0].tolist()


def main(share: float = 1.0) -> None:
    torch.set_num_threads(1)
    total = dict.fromkeys(WAYS, 0.0)
    for number, whole in enumerate(TRIALS):
        trial = replace(whole, n=round(share * whole.n))
        report = compare(trial, swapped=number % 2 == 1)
        print(json.dumps({"benchmark": "AutoAttack standard", **report}), flush=True)
        for name, value in report["seconds"].items():
            total[name] += value
    report = {
        "benchmark": "AutoAttack standard, all",
        "seconds": {name: round(value, 1) for name, value in total.items()},
        "time ratio": round(total["advlab"] / total["pyautoattack"], 2),
        "targets": {"difference at most": NEAR, "time ratio at most": FASTER},
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
