"""Memory in use after each epoch of a training: it is to stay where it is after the second.

A narrow ResNet9 (BatchNorm, which attacks fold) on a few images, with validation, a log, and
checkpoints. Resident memory in MB after epochs 2 and 20.

    ADVLAB_DATA=/path/to/data python -m benchmarks.training_memory
"""

import json
import tempfile
from pathlib import Path

import torch
from torch import nn

from advlab.core.randomness import generator
from advlab.data import cifar10
from advlab.models import ResNet9
from advlab.threats import Ball
from advlab.training import recipe, train

EPOCHS, TARGET = 20, 1.02


def resident(model: nn.Module) -> dict[str, float]:
    """Megabytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {"mb": pages * 4096 / 1e6}


def main() -> None:
    torch.set_num_threads(1)
    data = cifar10.load(n=384)
    with tempfile.TemporaryDirectory() as folder:
        trained = train(
            ResNet9.draw(generator("memory"), width=4),
            data.x[:256],
            data.y[:256],
            recipe=recipe("pgd", attack={"steps": 2}, epochs=float(EPOCHS), batch=64, lr=0.01),
            ball=Ball("linf", 8 / 255, box=(0, 1)),
            validation=(data.x[256:], data.y[256:]),
            measures={"resident": resident},
            out=Path(folder) / "run",
            progress=False,
        )
    used = trained.log["resident_mb"].to_list()
    early, late = used[1], used[EPOCHS - 1]
    report = {
        "benchmark": f"resident memory, {EPOCHS} epochs of PGD training",
        "MB after epoch 2": round(early, 1),
        f"MB after epoch {EPOCHS}": round(late, 1),
        "ratio": round(late / early, 4),
        "target": TARGET,
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
