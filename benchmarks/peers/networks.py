"""The networks that peers are compared on: trained by advlab's own loop, then kept.

    python -m benchmarks.peers.networks

trains what is missing (minutes each on one thread) into runs/peers. Data come from the directory
that ADVLAB_DATA names, as everywhere in advlab.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

import advlab
from advlab.attacks import PGD
from advlab.core.files import read_tensors, write_tensors
from advlab.core.randomness import generator
from advlab.data import Arrays, cifar10, mnist
from advlab.losses import ModelLoss, margin
from advlab.models import Normalised, ResNet9, SmallCNN
from advlab.threats import Ball
from advlab.training import Checkpoint, Cosine

CACHE = Path(__file__).parents[2] / "runs" / "peers"
BOX = (0.0, 1.0)


def _cnn(rng: torch.Generator) -> nn.Module:
    return SmallCNN.draw(rng, width=8)


def _resnet(rng: torch.Generator) -> nn.Module:
    return Normalised(ResNet9.draw(rng, width=8), (0.491, 0.482, 0.447), (0.247, 0.243, 0.262))


@dataclass(frozen=True)
class Recipe:
    """How one network is trained; without a ball it is trained on clean images."""

    load: Callable[..., Arrays]
    draw: Callable[[torch.Generator], nn.Module]
    rows: int
    epochs: int
    lr: float
    ball: Ball | None = None
    attack: PGD | None = None
    batch: int = 128


def _ball(norm, radius: float) -> Ball:
    return Ball(norm=norm, radius=radius, box=BOX)


_LONG = PGD(steps=7, step_size=0.3, jump=False)
_SHORT = PGD(steps=5, step_size=0.4, jump=False)
_TWO = PGD(steps=2, step_size=0.7, jump=False)
RECIPES: dict[str, Recipe] = {
    "mnist clean": Recipe(mnist.load, _cnn, 20_000, 6, 3e-3),
    "mnist linf": Recipe(mnist.load, _cnn, 20_000, 15, 3e-3, _ball("linf", 0.2), _LONG),
    "mnist l2": Recipe(mnist.load, _cnn, 20_000, 6, 3e-3, _ball("l2", 1.5), _SHORT),
    "cifar10 clean": Recipe(cifar10.load, _resnet, 10_000, 6, 5e-3),
    "cifar10 linf": Recipe(cifar10.load, _resnet, 10_000, 8, 5e-3, _ball("linf", 8 / 255), _TWO),
}


def network(name: str) -> nn.Module:
    """A trained network in eval mode, from the cache or trained now."""
    recipe, path = RECIPES[name], CACHE / f"{name.replace(' ', '-')}.safetensors"
    model = recipe.draw(generator("peers", name))
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        _train(name, recipe, model, unfinished)
        write_tensors(path, model.state_dict(), {"name": name})
        unfinished.unlink(missing_ok=True)
    model.load_state_dict(read_tensors(path)[0])
    return model.eval().requires_grad_(False)


def examples(name: str, n: int) -> Arrays:
    """The first n test images of the network's data set."""
    return RECIPES[name].load(n=n, split="test")


def _train(name: str, recipe: Recipe, model: nn.Module, checkpoint: Path) -> None:
    data = recipe.load(n=recipe.rows)
    # Another layout of the same numbers, in which convolutions on a CPU are faster.
    model.to(memory_format=torch.channels_last)
    began = time.process_time()
    advlab.fit(
        model,
        data.x,
        data.y,
        steps=recipe.epochs * recipe.rows // recipe.batch,
        lr=Cosine(lr=recipe.lr, warmup=0.1),
        ball=recipe.ball,
        attack=recipe.attack,
        batch=recipe.batch,
        optimizer=torch.optim.Adam,
        hooks=[Checkpoint(checkpoint, every=50)],
        rng=generator("peers", name, "fit"),
    )
    seconds = round(time.process_time() - began)
    print(json.dumps({"network": name, "trained in CPU seconds": seconds}), flush=True)


def accuracy(name: str, n: int = 500) -> dict[str, float]:
    """Clean, and under PGD-20 in the ball that the network was trained in."""
    model, test, ball = network(name), examples(name, n), RECIPES[name].ball
    loss = ModelLoss(model, test.y, margin)
    found = {"clean": float((loss(test.x) < 0).double().mean())}
    if ball is not None:
        attacked = PGD(steps=20, step_size=0.1)(loss, test.x, ball, rng=generator("peers", "pgd"))
        found["PGD-20"] = float((attacked.loss < 0).double().mean())
    return found


def main() -> None:
    for name in RECIPES:
        print(json.dumps({"network": name, "accuracy": accuracy(name)}), flush=True)


if __name__ == "__main__":
    main()
