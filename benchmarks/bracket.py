"""Attack below, certificate above, exact answer between: 200 small networks, no violation.

Each network has two inputs and one hidden layer, so that its worst margin is known twice over: by
branch and bound, and by a fine grid. For both norms, with and without a box, every example must
have  PGD <= exact <= CROWN <= CROWN-IBP <= IBP  and  grid <= exact; and so must the errors.

    python -m benchmarks.bracket
"""

import json
import time

import torch
from torch import Tensor, nn

from advlab.attacks import PGD, Grid
from advlab.certify import IBP, BranchAndBound, Crown, CrownIBP, Lipschitz
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, margin
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


def main() -> None:
    start = time.perf_counter()
    runs = [bracket(seed) for seed in range(NETWORKS)]
    found = {name: torch.cat([run[name] for run in runs]) for name in runs[0]}
    counted = violations(found)
    report = {
        "benchmark": f"bracket of {NETWORKS} networks, {NETWORKS * EXAMPLES} examples",
        "violations": sum(counted.values()),
        "of orders": len(counted) * len(found["exact"]),
        "robust error": {
            name: round(float((value >= 0).double().mean()), 4) for name, value in found.items()
        },
        "exact less grid, largest": float((found["exact"] - found["grid"]).max()),
        "seconds": round(time.perf_counter() - start, 1),
    }
    print(json.dumps(report), flush=True)
    if report["violations"]:
        raise SystemExit(str({name: count for name, count in counted.items() if count}))


if __name__ == "__main__":
    main()
