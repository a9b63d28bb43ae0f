"""Projected gradient ascent: the same answer as foolbox and torchattacks, and as fast.

From the same start all must end at the same loss. In l2 the libraries differ by design where the
box cuts the ball: advlab projects on both together, the others project and then clip. So the l2
balls are compared around images of low contrast, which the box does not cut, and shown for
ordinary images too. All walk in float64 and in float32; the float64 walks say who is right where
float32 walks part. Throughput is that of 512 images, 20 steps, in turns, medians, in seconds of CPU
and of the wall; with early exit images leave as soon as they are broken. Peers that are not
installed are left out.

    python -m benchmarks.peers.pgd
"""

import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor

from advlab.attacks import PGD
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, cross_entropy
from advlab.threats import Ball

from .libraries import LIBRARIES, Task, foolbox_pgd, torchattacks_pgd
from .networks import BOX, examples, network

N, CLOSE, LAST = 512, 1e-5, "advlab, last of its walk"
TARGETS = {"advlab": 1.0, "advlab, early exit": 1.5}
Times = dict[str, float]
RADII = {"linf": 0.1, "l2": 1.0}


def task(norm, contrast: float = 1.0, dtype: torch.dtype = torch.float32) -> Task:
    test = examples("mnist clean", N)
    x = 0.5 + contrast * (test.x - 0.5)
    ball = Ball(norm=norm, radius=RADII[norm] * contrast, box=BOX)
    return Task(network("mnist clean").to(dtype), x.to(dtype), test.y, ball)


def hard_task() -> Task:
    """An adversarially trained network, of which early exit has little to gain."""
    test = examples("mnist linf", N)
    return Task(network("mnist linf"), test.x, test.y, Ball(norm="linf", radius=0.2, box=BOX))


def last_point(one: Task) -> Tensor:
    """Where advlab's walk ends, which is what the others return; by itself it returns the worst."""
    walk = PGD(steps=one.steps, step_size=one.share, random_start=False, jump=False, keep="last")
    loss = ModelLoss(one.model, one.y, cross_entropy)
    return walk(loss, one.x, one.ball, rng=generator("peers")).x


def losses(one: Task) -> dict[str, Tensor]:
    """Each library's final losses, image by image, all computed in the one usual way."""
    found = {
        LAST: last_point(one),
        "advlab, worst of its walk": LIBRARIES["advlab"](one),
        "foolbox": foolbox_pgd(one),
        "torchattacks": torchattacks_pgd(one),
    }
    with torch.no_grad():
        return {k: F.cross_entropy(one.model(x), one.y, reduction="none") for k, x in found.items()}


def compare(name: str, norm, contrast: float = 1.0) -> None:
    """Each library's walk in both precisions against advlab's in float64, which the report names
    equal to the others' in float64 or not."""
    exact = losses(task(norm, contrast, torch.float64))
    truth = exact[LAST]
    walks = {"float64": exact, "float32": losses(task(norm, contrast))}
    report = {
        "benchmark": f"PGD, final loss, {name}",
        **{kind: {k: _apart(v, truth) for k, v in found.items()} for kind, found in walks.items()},
        "target": CLOSE,
    }
    print(json.dumps(report), flush=True)


def _apart(values: Tensor, truth: Tensor) -> dict[str, float]:
    away = values - truth
    return {
        "mean loss": round(float(values.mean()), 6),
        "above advlab's float64": float(f"{float(away.mean()):.1e}"),
        "rows more than 1e-5 apart": int((away.abs() > CLOSE).sum()),
        "largest": float(f"{float(away.abs().max()):.1e}"),
    }


def throughput(name: str, one: Task, threads: int, repeats: int = 5) -> None:
    torch.set_num_threads(threads)
    calls = {
        name: lambda library=library: library(one)
        for name, library in LIBRARIES.items()
        if name == "advlab" or find_spec(name.lower()) is not None
    }
    calls["advlab, last of its walk"] = lambda: last_point(one)
    calls["advlab, early exit"] = lambda: stopped_early(one)
    robust = {name: _robust(one, call()) for name, call in calls.items()}
    wall, cpu = in_turns(calls, repeats)
    report = {
        "benchmark": f"PGD, throughput, {N} images, {one.steps} steps, {name}",
        "threads": threads,
        "milliseconds": {name: round(1000 * value) for name, value in wall.items()},
        "CPU milliseconds": {name: round(1000 * value) for name, value in cpu.items()},
        "x the fastest peer": _ratios(wall),
        "by CPU time": _ratios(cpu),
        "target": TARGETS,
        "robust accuracy": robust,
    }
    print(json.dumps(report), flush=True)


def in_turns(calls: dict[str, Callable[[], object]], repeats: int) -> tuple[Times, Times]:
    """Median seconds of the wall and of the CPU, the calls taking turns."""
    wall: dict[str, list[float]] = {name: [] for name in calls}
    cpu: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter(), time.process_time()
            call()
            wall[name].append(time.perf_counter() - start[0])
            cpu[name].append(time.process_time() - start[1])
    return {k: median(v) for k, v in wall.items()}, {k: median(v) for k, v in cpu.items()}


def _ratios(seconds: Times) -> Times:
    """How many times as fast as the fastest peer with a plain PGD."""
    peers = [v for k, v in seconds.items() if "advlab" not in k and k != "pyautoattack"]
    return {k: round(min(peers) / v, 2) for k, v in seconds.items() if "advlab" in k}


def stopped_early(one: Task) -> Tensor:
    attack = PGD(steps=one.steps, step_size=one.share, random_start=False, early_exit=True)
    loss = ModelLoss(one.model, one.y, cross_entropy)
    return attack(loss, one.x, one.ball, rng=generator("peers")).x


def _robust(one: Task, found: Tensor) -> float:
    with torch.no_grad():
        return round(100 * float((one.model(found).argmax(1) == one.y).double().mean()), 1)


def main() -> None:
    torch.set_num_threads(1)
    compare("linf", "linf")
    compare("l2 where no box cuts", "l2", contrast=0.4)
    compare("l2 cut by the box, which the libraries treat differently", "l2")
    for threads in (1, 2):
        for norm in RADII:
            throughput(f"clean network, {norm}", task(norm), threads)
    throughput("adversarially trained network, linf", hard_task(), 1)


if __name__ == "__main__":
    main()
