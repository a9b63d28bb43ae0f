"""Certificates: CPU seconds of interval and CROWN bounds beside a plain implementation, their slack
in float32, and what branch and bound proves beyond CROWN.

The plain way writes each layer as a matrix and propagates back by products, which is what one does
without a library; both must give the same bounds. Machines and networks are small.

    python -m benchmarks.certificates
"""

import copy
import json
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from advlab.certify import IBP, BetaCrown, Crown, CrownIBP
from advlab.core.randomness import generator
from advlab.threats import Ball

EXAMPLES, REPEATS = 8, 5
AROUND = Ball("linf", 0.01, (0.0, 1.0))


def networks() -> dict[str, nn.Module]:
    """Dense and convolutional, with ReLU, GELU and sigmoid."""
    torch.manual_seed(0)
    found: dict[str, nn.Module] = {}
    for name, layer in (("relu", nn.ReLU()), ("gelu", nn.GELU()), ("sigmoid", nn.Sigmoid())):
        found[f"dense {name}"] = nn.Sequential(
            nn.Flatten(), nn.Linear(196, 100), layer, nn.Linear(100, 100), layer, nn.Linear(100, 10)
        )
        found[f"convolution {name}"] = nn.Sequential(
            nn.Conv2d(1, 6, 4, stride=2, padding=1), layer, nn.Conv2d(6, 8, 4, stride=2), layer,
            nn.Flatten(), nn.Linear(32, 10),
        )  # fmt: skip
    return {name: net.eval().requires_grad_(False) for name, net in found.items()}


def plain_crown_ibp(net: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """CROWN-IBP of a dense ReLU network over a box, by written-out matrices."""
    dense, worst = [layer for layer in net.modules() if isinstance(layer, nn.Linear)], []
    for one, own in zip(x.flatten(1), y.tolist(), strict=True):
        low, high = (one - radius).clamp(0, 1), (one + radius).clamp(0, 1)
        ends, before = [], (low, high)
        for layer in dense[:-1]:
            center, width = (before[0] + before[1]) / 2, (before[1] - before[0]) / 2
            middle, reach = layer(center), width @ layer.weight.abs().T
            ends.append((middle - reach, middle + reach))
            before = (ends[-1][0].relu(), ends[-1][1].relu())
        a = dense[-1].weight - dense[-1].weight[own]
        constant = dense[-1].bias - dense[-1].bias[own]
        for layer, (least, most) in zip(dense[-2::-1], ends[::-1], strict=True):
            free = (least < 0) & (most > 0)
            chord = torch.where(free, most / (most - least), (least >= 0).float())
            below = torch.where(free, (most > -least).float(), (least >= 0).float())
            constant = constant + a.clamp(min=0) @ torch.where(free, -chord * least, 0.0)
            a = a * torch.where(a > 0, chord, below)
            constant, a = constant + a @ layer.bias, a @ layer.weight
        bound = constant + a.clamp(min=0) @ high + a.clamp(max=0) @ low
        bound[own] = -torch.inf
        worst.append(bound.max())
    return torch.stack(worst)


def fastest(call: Callable[[], object]) -> float:
    """The least CPU seconds of a few calls."""
    taken = []
    for _ in range(REPEATS):
        begun = time.process_time()
        call()
        taken.append(time.process_time() - begun)
    return min(taken)


def main() -> None:
    """One line per network, and one for the plain way."""
    torch.set_num_threads(1)
    x = torch.rand(EXAMPLES, 1, 14, 14, generator=generator("certificates"))
    for name, net in networks().items():
        y, wide = net(x).argmax(1), copy.deepcopy(net).double()
        calls = {c.name: c for c in (IBP(), CrownIBP(), Crown())}
        seconds = {
            key: fastest(partial(c.worst_margin, net, x, y, AROUND)) for key, c in calls.items()
        }
        bounds = {key: c.worst_margin(net, x, y, AROUND) for key, c in calls.items()}
        exact = {key: c.worst_margin(wide, x.double(), y, AROUND) for key, c in calls.items()}
        line = {
            "network": name,
            "cpu_seconds": {key: round(value, 4) for key, value in seconds.items()},
            "mean_bound": {key: round(float(value.mean()), 4) for key, value in bounds.items()},
            "float32_slack": {k: f"{float((bounds[k] - exact[k]).max()):.1e}" for k in bounds},
        }
        if name == "dense relu":
            way = partial(plain_crown_ibp, net, x, y, AROUND.radius)
            plain = way()
            line["crown_ibp_over_plain"] = round(seconds["crown_ibp"] / fastest(way), 2)
            line["largest_difference"] = f"{float((bounds['crown_ibp'] - plain).abs().max()):.1e}"
        if "relu" in name:
            searched = BetaCrown(seconds=20, nodes=200).worst_margin(net, x[:2], y[:2], AROUND)
            line["beta_crown_below_crown"] = round(
                float((bounds["crown"][:2] - searched).mean()), 5
            )
        print(json.dumps(line))


if __name__ == "__main__":
    main()
