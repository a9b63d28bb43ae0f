"""Robust overfitting, and what early stop, AWP and SWA do to it: a table over three seeds.

A small convolutional network, or a narrow ResNet9, is trained on a few CIFAR-10 images by PGD-3 in
linf 8/255 (Rice, Wong and Kolter, ICML 2020): plain, with adversarial weight perturbation (AWP),
and with averaged weights (SWA). Overfitting needs a network that can memorise its images: ResNet9
of width 8 has too few weights for it in so few epochs.
After each epoch the robust error of PGD-10 is measured on validation images, which choose the epoch
of the early stop, and on test images, which choose nothing. It is a lower bound of the true one.

    ADVLAB_DATA=/path/to/data python -m benchmarks.robust_overfitting --out runs/overfitting

The same command goes on where it was stopped; runs that are whole are read, not repeated.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

from advlab.attacks import PGD
from advlab.core.randomness import generator
from advlab.data import Arrays, cifar10
from advlab.models import ResNet9
from advlab.models.normalised import Normalised
from advlab.papers.cgro.models import StridedCNN
from advlab.threats import Ball
from advlab.training import recipe, train
from advlab.training.errors_of import ErrorsOf

BALL = Ball("linf", 8 / 255, box=(0, 1))
JUDGE = PGD(steps=10, step_size=0.25)
NETWORKS = {"strided": StridedCNN, "resnet9": ResNet9}
KINDS: dict[str, dict[str, Any]] = {
    "PGD": {},
    "PGD + AWP": {"awp": 0.01},
    "PGD + SWA": {"average": "swa", "swa_start": 0.3},
}
SETTINGS: dict[str, Any] = {
    "attack": {"steps": 3, "step_size": 0.5},
    "optimizer": "adam",
    "lr": 1e-3,
    "weight_decay": 0.0,
    "schedule": "drops",
    "drops": (0.5, 0.75),
    "radius_warmup": 2.0,
    "augment": "none",
}


def run(kind: str, seed: int, parts: tuple[Arrays, Arrays, Arrays], about: Any) -> dict[str, float]:
    """Errors on test images at the epoch of the early stop and at the end, and the time it took."""
    folder = about.out / f"{about.network}-{kind.replace(' + ', '-').lower()}-{seed}"
    kept = folder / "errors.json"
    if kept.is_file():
        return json.loads(kept.read_text())
    begun = time.process_time()
    some, held, test = parts
    net = NETWORKS[about.network].draw(generator("overfitting", seed), width=about.width)
    trained = train(
        Normalised(net, [0.49, 0.48, 0.45], [0.25, 0.24, 0.26]),
        some.x,
        some.y,
        recipe=recipe("pgd", epochs=float(about.epochs), **SETTINGS, **KINDS[kind]),
        ball=BALL,
        validation=(held.x, held.y),
        attack=JUDGE,
        measures={"test": ErrorsOf(test.x, test.y, BALL, JUDGE)},
        rng=seed,
        out=folder,
        progress=False,
    )
    if trained.best is None:
        raise RuntimeError("no epoch was measured")
    last = trained.log.row(-1, named=True)
    found = {
        "epoch of the stop": trained.best["epoch"],
        "stop, clean": trained.best["test_clean_error"],
        "stop, robust": trained.best["test_robust_error"],
        "end, clean": last["test_clean_error"],
        "end, robust": last["test_robust_error"],
        "end, robust on training images": last["train_robust_error"],
        "CPU seconds": time.process_time() - begun,
    }
    kept.write_text(json.dumps(found))
    return found


def lines(rows: dict[str, list[dict[str, float]]]) -> Iterator[str]:
    """The table: means and standard deviations over seeds; the loss by overfitting is paired."""
    columns = list(next(iter(rows.values()))[0])
    yield "| | " + " | ".join([*columns, "robust error, end - stop"]) + " |"
    yield "|---" * (len(columns) + 2) + "|"
    for kind, found in rows.items():
        values = {name: [one[name] for one in found] for name in columns}
        values["loss"] = [one["end, robust"] - one["stop, robust"] for one in found]
        yield f"| {kind} | " + " | ".join(_spread(each) for each in values.values()) + " |"


def _spread(values: list[float]) -> str:
    places = 3 if max(map(abs, values)) < 2 else 0
    spread = f" ± {stdev(values):.{places}f}" if len(values) > 1 else ""
    return f"{mean(values):.{places}f}{spread}"


def main() -> None:
    read = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    read.add_argument("--out", type=Path, default=Path("runs/overfitting"))
    read.add_argument("--n", type=int, default=1000, help="training images")
    read.add_argument("--held", type=int, default=300, help="validation images")
    read.add_argument("--test", type=int, default=500, help="test images")
    read.add_argument("--network", choices=NETWORKS, default="strided")
    read.add_argument("--width", type=int, default=32)
    read.add_argument("--epochs", type=int, default=30)
    read.add_argument("--seeds", type=int, default=3)
    about = read.parse_args()
    torch.set_num_threads(1)
    whole, test = cifar10.load(n=about.n + about.held), cifar10.load(n=about.test, split="test")
    parts = (
        Arrays(whole.x[: about.n], whole.y[: about.n]),
        Arrays(whole.x[about.n :], whole.y[about.n :]),
        test,
    )
    rows: dict[str, list[dict[str, float]]] = {}
    for seed in range(10, 10 + about.seeds):  # others were trials
        for kind in KINDS:
            rows.setdefault(kind, []).append(run(kind, seed, parts, about))
            print(kind, seed, json.dumps(rows[kind][-1]), flush=True)
    print("\n".join(lines(rows)), flush=True)


if __name__ == "__main__":
    main()
