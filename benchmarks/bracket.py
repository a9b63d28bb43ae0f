"""Attack below, certificate above, exact answer between: 200 small networks, no violation.

Each network has two inputs and one hidden layer, so that its worst margin is known twice over: by
branch and bound, and by a fine grid. For both norms, with and without a box, every example must
have  PGD <= exact <= CROWN <= CROWN-IBP <= IBP  and  grid <= exact; and so must the errors.

Then the cost of judging a small CNN on MNIST: `evaluate(attack="standard")` must take no more CPU
than `AutoAttack().run` on the same images, but for its checks and certificates. The two run one
cascade, so they must break the same rows and send as many rows through the model.

    python -m benchmarks.bracket [SHARE]

SHARE of AutoAttack's steps and queries, all by default.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from advlab.attacks import PGD, AutoAttack, Grid
from advlab.certify import IBP, BranchAndBound, Crown, CrownIBP, Lipschitz
from advlab.core.randomness import generator
from advlab.data import mnist
from advlab.evaluation import evaluate as evaluate_model
from advlab.losses import ModelLoss, cross_entropy, is_error, margin
from advlab.models import SmallCNN
from advlab.threats import Ball

NETWORKS, EXAMPLES, WIDTHS, CLASSES = 200, 4, (3, 6, 12, 24), (2, 3, 5)
UPPER = {c.name: c() for c in (BranchAndBound, Crown, CrownIBP, IBP, Lipschitz)}


def network(seed: int) -> tuple[nn.Module, Tensor, Tensor]:
    """Standard normal weights and inputs; labels are the network's own."""
    rng = generator("bracket", seed)
    width, classes = WIDTHS[seed % len(WIDTHS)], CLASSES[seed % len(CLASSES)]
    net = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, classes)).double()
    for parameter in net.parameters():
        nn.init.normal_(parameter, generator=rng)
    x = torch.rand(EXAMPLES, 2, generator=rng, dtype=torch.float64)
    return net, x, net(x).argmax(1)


def threat(seed: int) -> Ball:
    """Both norms, four radii, every other one with a box."""
    radius = (0.02, 0.05, 0.1, 0.3)[seed // 2 % 4]
    return Ball(norm=("linf", "l2")[seed % 2], radius=radius, box=(0.0, 1.0) if seed % 3 else None)


def bracket(seed: int) -> dict[str, Tensor]:
    """Worst margins of the examples of one network by every method."""
    net, x, y = network(seed)
    ball, loss, rng = threat(seed), ModelLoss(net, y, margin), generator("bracket", "attack", seed)
    found = {"pgd": PGD(steps=20)(loss, x, ball, rng=rng).loss}
    found["grid"] = Grid(points=400)(loss, x, ball, rng=rng).loss
    return found | {name: c.worst_margin(net, x, y, ball) for name, c in UPPER.items()}


def violations(found: dict[str, Tensor]) -> dict[str, int]:
    """How often an order that must hold does not; the exact bound is exact to its tolerance."""
    close = 1e-5 * (1 + found["exact"].abs())
    orders = {
        f"{low} above {high}": found[low] > found[high] for low in ("pgd", "grid") for high in UPPER
    }
    orders |= {
        f"exact above {high}": found["exact"] > found[high] + close
        for high in ("crown", "crown_ibp", "ibp", "lipschitz")
    }
    orders["crown above crown_ibp"] = found["crown"] > found["crown_ibp"]
    orders["crown_ibp above ibp"] = found["crown_ibp"] > found["ibp"]
    return {name: int(wrong.sum()) for name, wrong in orders.items()}


IMAGES, REPEATS, TRAINING = 256, 5, 150
AROUND = Ball(norm="linf", radius=0.1, box=(0.0, 1.0))
SEED = ("evaluate", 0, 0)
"""The stream from which `evaluate` draws for its first batch."""


def small_cnn() -> nn.Module:
    """A CNN after a few seconds of training, the second half of it on perturbed images."""
    data, rng = mnist.load(split="train"), generator("bracket", "cnn")
    net = SmallCNN.draw(rng, width=4)
    optimizer, attack = torch.optim.Adam(net.parameters(), lr=3e-3), PGD(steps=3, step_size=0.5)
    for step in range(TRAINING):
        rows = torch.randint(len(data.x), (128,), generator=rng)
        x, y = data.x[rows], data.y[rows]
        if 2 * step > TRAINING:
            x = attack(ModelLoss(net, y, cross_entropy), x, AROUND, rng=rng).x
        optimizer.zero_grad()
        cross_entropy(net(x), y).mean().backward()
        optimizer.step()
    return net.eval().requires_grad_(False)


def ways(share: float) -> dict[str, Callable[[nn.Module, Tensor, Tensor], tuple[float, list]]]:
    """Robust error and accounts by the ensemble alone, and by evaluate with less and more."""
    attack = AutoAttack(steps=round(100 * share), queries=round(5000 * share))

    def run(net: nn.Module, x: Tensor, y: Tensor) -> tuple[float, list]:
        loss = ModelLoss(net, y, margin)
        found, results = attack.run(loss, x, AROUND, rng=generator(*SEED))
        return float(is_error(found.loss).double().mean()), results

    def evaluate(**settings) -> Callable[[nn.Module, Tensor, Tensor], tuple[float, list]]:
        def call(net: nn.Module, x: Tensor, y: Tensor) -> tuple[float, list]:
            found = evaluate_model(net, x, y, AROUND, attack, **settings)
            return found.robust_error, list(found.members)

        return call

    return {
        "AutoAttack.run": run,
        "evaluate, attack only": evaluate(checks=False, certificates=()),
        "evaluate with checks": evaluate(certificates=()),
        "evaluate": evaluate(),
    }


def cost(share: float) -> dict:
    """CPU seconds of each way, in turn and back; how many convolutions saw channels last."""
    torch.set_num_threads(1)
    net, test = small_cnn(), mnist.load(n=IMAGES, split="test")
    seconds, layouts, answers = {}, {}, {}
    strides: list[tuple[int, ...]] = []
    first = next(module for module in net.modules() if isinstance(module, nn.Conv2d))
    first.register_forward_pre_hook(lambda _, inputs: strides.append(inputs[0].stride()))
    chosen = list(ways(share).items())
    for repeat in range(REPEATS):
        for name, way in chosen[:: -1 if repeat % 2 else 1]:
            strides.clear()
            start = time.process_time()
            answers[name] = way(net, test.x, test.y)
            seconds.setdefault(name, []).append(time.process_time() - start)
            layouts[name] = (sum(s[1] == 1 for s in strides), len(strides))
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    alone = middle["AutoAttack.run"]
    return {
        "benchmark": f"evaluate against AutoAttack().run, {IMAGES} images, budget {share:g}",
        "CPU seconds": {name: [round(v, 2) for v in values] for name, values in seconds.items()},
        "ratio of medians": {name: round(value / alone, 3) for name, value in middle.items()},
        "channels last": {name: f"{last} of {all_}" for name, (last, all_) in layouts.items()},
        "robust error, at least": {name: error for name, (error, _) in answers.items()},
        "rows forward": {
            name: sum(member.forwards for member in members)
            for name, (_, members) in answers.items()
        },
    }


def main(share: float = 1.0) -> None:
    bounds()
    print(json.dumps(cost(share)), flush=True)


def bounds() -> None:
    start = time.perf_counter()
    runs = [bracket(seed) for seed in range(NETWORKS)]
    found = {name: torch.cat([run[name] for run in runs]) for name in runs[0]}
    counted = violations(found)
    report = {
        "benchmark": f"bracket of {NETWORKS} networks, {NETWORKS * EXAMPLES} examples",
        "violations": sum(counted.values()),
        "of orders": len(counted) * len(found["exact"]),
        "robust error": {
            name: round(float(is_error(value).double().mean()), 4) for name, value in found.items()
        },
        "exact less grid, largest": float((found["exact"] - found["grid"]).max()),
        "seconds": round(time.perf_counter() - start, 1),
    }
    print(json.dumps(report), flush=True)
    if report["violations"]:
        raise SystemExit(str({name: count for name, count in counted.items() if count}))


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
