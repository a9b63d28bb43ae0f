"""Linear rules and tangent kernels on the data of the presets: trained, and attacked."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .....core.randomness import generators
from .....models import Linear, Stack
from .....threats import Ball
from .....training import Adversarial, Clean, Probe, fit
from ...data import SparseCoding
from ...measures import survival
from ...models import TangentReLU
from ...theory import regime
from .presets import PAPER_FGM, PRESETS, TRAINING_ATTACK, Preset, SparseProblem

FEATURES, STEPS, WARMUP = 256, 250, 100
LINEAR_STEPS, LINEAR_RATE, EVERY = 400, 0.01, 10
Found = dict[str, Tensor]
"""One number per replicate, by name."""


@dataclass(frozen=True)
class NTKSettings:
    """A tangent model: its gates P(<w, x> + rho >= b) + sign P(..), and how it trains."""

    adversarial: bool
    bias: float = 1.0
    noise: float = 0.5
    rate: float = 1e-3
    sign: Literal[1, -1] = 1


RECIPES = {
    "NTK, clean": NTKSettings(adversarial=False),
    "NTK, adversarial": NTKSettings(adversarial=True),
    "NTK, best trial": NTKSettings(adversarial=True, bias=2.0, noise=1.0),
    "NTK as printed": NTKSettings(adversarial=False, sign=-1),
}


def resized(name: str, d: int, n: int, **changes: object) -> Preset:
    """A preset at another dimension or pool; k falls like sqrt(d), as few entries as before.

    Args:
        name: of the preset.
        d: the dimension.
        n: the size of the training pool.
        changes: other fields of the law of the data.
    """
    preset = PRESETS[name]
    k = max(round(preset.data.k * (d / preset.data.d) ** 0.5), 2)
    law = preset.data.model_dump() | {"d": d, "n": n, "k": k} | changes
    return preset.model_copy(update={"data": SparseCoding.model_validate(law)})


def theory_statement(preset: Preset) -> str:
    """What the theorems say of the preset's radius; constants set to 1."""
    return str(regime(preset.data.d, preset.data.k).says(preset.tau, preset.norm))


def linear_rows(
    problem: SparseProblem, steps: int = LINEAR_STEPS
) -> tuple[Found, dict[int, Found]]:
    """Exact accuracies of the oracle direction, and of adversarial training along its path.

    "trained": the most robust point of the path, chosen on the test points themselves.
    """
    ball = problem.preset.ball
    oracle = problem.direction
    found = {"oracle clean": linear_accuracy(problem, oracle, ball, 0.0),
             "oracle robust": linear_accuracy(problem, oracle, ball, 1.0)}  # fmt: skip
    models = Stack([Linear(torch.zeros_like(one)) for one in oracle])
    theta = models.get_parameter("theta")
    run = fit(
        models,
        problem.x,
        problem.y,
        steps=steps,
        lr=LINEAR_RATE,
        batch=problem.preset.batch,
        objective=Adversarial(
            loss="logistic", ball=ball, attack=PAPER_FGM, warmup=min(problem.preset.warmup, steps)
        ),
        optimizer=torch.optim.Adam,
        hooks=[
            Probe(
                {
                    "clean": lambda _: linear_accuracy(problem, theta.detach(), ball, 0.0),
                    "robust": lambda _: linear_accuracy(problem, theta.detach(), ball, 1.0),
                },
                every=EVERY,
            )
        ],
        rng=generators(problem.stream, "linear", seeds=problem.seeds),
    )
    clean, robust = (run.log.probe(name) for name in ("clean", "robust"))
    best = robust.argmax(0, keepdim=True)
    found |= {"trained clean": clean.gather(0, best)[0], "trained robust": robust.amax(0)}
    path = {step: {"clean": clean[i], "robust": robust[i]}
            for i, step in enumerate(run.log.probe_steps)}  # fmt: skip
    return found, path


def linear_accuracy(problem: SparseProblem, theta: Tensor, ball: Ball, share: float) -> Tensor:
    """mean(y <theta, x> > share tau ||theta||_*): no attack is needed for a linear rule."""
    scores = problem.test_y * (problem.test_x @ theta[:, :, None])[..., 0]
    return (scores > share * ball.radius * ball.dual_norm(theta)[:, None]).double().mean(1)


def tangent(
    problem: SparseProblem, recipe: NTKSettings, features: int = FEATURES, steps: int = STEPS
) -> Stack:
    """Random features for each replicate, v trained by Adam in mini-batches of the pool."""
    d, kept = problem.preset.data.d, problem.x.dtype
    rngs = generators(problem.stream, "tangent", seeds=problem.seeds)
    models = Stack([TangentReLU.draw(d, features, recipe.bias, rng, recipe.noise, recipe.sign, kept)
                    for rng in rngs])  # fmt: skip
    against = Adversarial(
        loss="logistic", ball=problem.preset.ball, attack=TRAINING_ATTACK, warmup=min(WARMUP, steps)
    )
    fit(
        models,
        problem.x,
        problem.y,
        steps=steps,
        lr=recipe.rate,
        batch=problem.preset.batch,
        objective=against if recipe.adversarial else Clean(loss="logistic"),
        optimizer=torch.optim.Adam,
        rng=generators(problem.stream, "tangent training", seeds=problem.seeds),
    )
    return models


def attacked(problem: SparseProblem, models: Stack, steps: int = 40) -> Found:
    """Accuracies under no attack, a random move, the universal one, FGM, PGD, and the worst."""
    rngs = generators(problem.stream, "attacks", seeds=problem.seeds)
    move = problem.direction
    return survival(
        models, problem.test_x, problem.test_y, problem.preset.ball, move, rngs, steps
    ).accuracies()


@torch.no_grad()
def closed_accuracy(problem: SparseProblem, models: Stack) -> Tensor:
    """The accuracy on the test points and their opposites, with opposite labels."""
    x = torch.cat([problem.test_x, -problem.test_x], dim=1)
    y = torch.cat([problem.test_y, -problem.test_y], dim=1)
    return (models(x.flatten(0, 1)).reshape(y.shape) * y > 0).double().mean(1)
