"""Rows broken of models that hide their gradients: advlab beside foolbox and AutoAttack.

    python -m benchmarks.masked_models [rows]

Four small networks in two norms: softmax(1000 z), inputs rounded to a grid, sign activations and
k-winners-take-all. Each line has the rows that `advlab.evaluate` breaks with the suites `fast` and
`standard`, through labels alone, and what each peer breaks of the same rows, with CPU seconds.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import advlab
from advlab.attacks import AutoAttack
from advlab.losses import ModelLoss, is_error, margin
from advlab.models import LabelsOnly
from advlab.threats import Ball

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

import masked_nets

CASES = (("linf", 0.1), ("l2", 0.35))


def timed(compute: Callable[[], int]) -> tuple[int, float]:
    """What a function counts, and its CPU seconds."""
    begun = time.process_time()
    return compute(), time.process_time() - begun


def judged(model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, ball: Ball, suite: str) -> int:
    found = advlab.evaluate(model, x, y, ball, suite, certificates=())
    return round(found.robust_error * found.n)


def main(rows: int = 64) -> bool:
    """Print the table; whether `standard` breaks at least as much as the best peer everywhere."""
    x, y = masked_nets.clouds(rows)
    ahead = True
    print(f"rows broken of {rows} (CPU seconds)")
    for norm, eps in CASES:
        ball = Ball(norm, eps, box=(0, 1))
        for kind in ("none", *masked_nets.KINDS):
            model = masked_nets.masked(kind)
            labels = LabelsOnly(lambda x, m=model: m(x).argmax(1), masked_nets.CLASSES)
            loss = ModelLoss(model, y, margin)
            ours = {
                "fast": timed(lambda m=model, b=ball: judged(m, x, y, b, "fast")),
                "standard": timed(lambda m=model, b=ball: judged(m, x, y, b, "standard")),
                "labels only": timed(lambda m=labels, b=ball: judged(m, x, y, b, "standard")),
            }
            attacked = timed(
                lambda f=loss, b=ball: int(is_error(AutoAttack()(f, x, b, rng=0).loss).sum())
            )
            hits = masked_nets.broken_by_peers(model, x, y, norm, eps)
            peers = {"AutoAttack": attacked[0], **{k: int(hit.sum()) for k, hit in hits.items()}}
            ahead &= ours["standard"][0] >= max(peers.values())
            shown = ", ".join(f"{name} {n} ({s:.1f})" for name, (n, s) in ours.items())
            beside = ", ".join(f"{name} {n}" for name, n in peers.items())
            print(
                f"{kind:<10}{norm:<5} {shown} | AutoAttack ({attacked[1]:.1f}) {beside}", flush=True
            )
    return ahead


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(0 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 64) else 1)
