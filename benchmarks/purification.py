"""The purification run, clean phase and adversarial phase, against plain autograd.

The plain way trains with torch.optim.SGD and autograd on the inputs as they are drawn, in the same
batches and with the same attack steps (it keeps the last point, not the worst, which is cheaper).
Losses of the clean phase must agree step by step, the adversarial losses at the end on average.
Both take turns, seed by seed, and are measured in CPU time.

    python -m benchmarks.purification
"""

import json
import time

import torch
import torch.nn.functional as F
from torch import Tensor

from advlab.core.randomness import generator
from advlab.papers.purification.experiments._parts.presets import (
    PRESETS,
    Phase,
    Preset,
    SparseProblem,
)
from advlab.training.batches import ArrayBatches

SEEDS, TARGET, LIMIT = range(5), 3.0, 300.0
PHASES = ("clean", "adversarial")
CLOSE_STEPS, CLOSE, CLOSE_AT_END = 30, 1e-3, 0.1


def output(w: Tensor, x: Tensor, b: float) -> Tensor:
    u = x @ w.T
    return (torch.relu(u - b) - torch.relu(-u - b)).sum(1)


def plain_attack(w: Tensor, x: Tensor, y: Tensor, b: float, tau: float) -> Tensor:
    """The FGM point and two projected steps of the whole radius."""
    delta = torch.zeros_like(x)
    for _ in range(3):
        delta.requires_grad_()
        (grad,) = torch.autograd.grad(F.softplus(-y * output(w, x + delta, b)).sum(), delta)
        delta = delta.detach() + tau * grad / grad.norm(dim=1, keepdim=True).clamp(min=1e-30)
        delta = delta * (tau / delta.norm(dim=1, keepdim=True).clamp(min=1e-30)).clamp(max=1)
    return x + delta


def plain_phase(
    problem: SparseProblem, r: int, w: Tensor, phase: Phase, adversarial: bool
) -> list[float]:
    preset, x, y = problem.preset, problem.x[r], problem.y[r]
    weight = w.requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=phase.lr)
    name = "adversarial" if adversarial else "clean"
    rng, batches = (
        generator(problem.stream, name, problem.seeds[r]),
        ArrayBatches(x, y, preset.batch),
    )
    losses = []
    for step in range(phase.steps):
        b = preset.bias.end if adversarial else preset.bias.at(step)
        points, labels = batches.next(rng)
        if adversarial:
            tau = preset.tau * min(1.0, (step + 1) / preset.warmup)
            points = plain_attack(weight.detach(), points, labels, b, tau)
        loss = F.softplus(-labels * output(weight, points, b)).mean()
        length = weight.norm(dim=1)
        objective = loss + phase.penalty * (length**2 / 2 + length**3 / 3).sum()
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
        with torch.no_grad():
            if preset.cap is not None:
                longest = weight.norm(dim=1, keepdim=True)
                weight.mul_((preset.cap / longest).clamp(max=1))
        losses.append(float(loss.detach()))
    return losses


def plain(problem: SparseProblem) -> tuple[Tensor, Tensor]:
    """Clean and adversarial losses, (steps, seeds)."""
    clean, adversarial = [], []
    for r, start in enumerate(problem.networks().get_parameter("weight").detach()):
        w = start.clone()
        clean.append(plain_phase(problem, r, w, problem.preset.clean, False))
        adversarial.append(plain_phase(problem, r, w, problem.preset.adversarial, True))
    return torch.tensor(clean).T, torch.tensor(adversarial).T


def stacked(problem: SparseProblem) -> tuple[Tensor, Tensor]:
    nets = problem.networks()
    clean = problem.train_clean(nets).log.losses()
    return clean[:-1], problem.train_adversarial(nets).log.losses()[:-1]


def timed(run, problem: SparseProblem) -> tuple[float, tuple[Tensor, Tensor]]:
    start = time.process_time()
    losses = run(problem)
    return time.process_time() - start, losses


def shortened(preset: Preset) -> Preset:
    """A few steps, to load what the first run loads."""
    few = {name: getattr(preset, name).model_copy(update={"steps": 2}) for name in PHASES}
    return preset.model_copy(update=few)


def main(preset: str = "random") -> None:
    settings, stream = PRESETS[preset], "benchmark/purification"
    stacked(SparseProblem.draw(shortened(settings), [0], stream, tests=1))
    seconds, first, ends = {"engine": 0.0, "plain": 0.0}, 0.0, {"engine": 0.0, "plain": 0.0}
    for seed in SEEDS:
        drawn = [SparseProblem.draw(settings, [seed], stream, 1, rotate=r) for r in (True, False)]
        found = {}
        for name, run, problem in zip(seconds, (stacked, plain), drawn, strict=True):
            took, found[name] = timed(run, problem)
            seconds[name] += took
            ends[name] += float(found[name][1][-50:].mean())
        clean, plain_clean = (found[name][0][:CLOSE_STEPS] for name in seconds)
        first = max(first, float((clean - plain_clean).abs().max()))
    last = abs(ends["engine"] / ends["plain"] - 1)
    if first > CLOSE or last > CLOSE_AT_END:
        raise SystemExit(f"the losses disagree: {first} at first, {last:.0%} at the end")
    report = {
        "benchmark": f"purification preset {preset}, {len(SEEDS)} seeds, both phases",
        "ratio": round(seconds["plain"] / seconds["engine"], 2),
        "target": TARGET,
        "CPU seconds": {name: round(value, 1) for name, value in seconds.items()},
        "limit seconds": LIMIT,
        "largest difference of the first clean losses": first,
        "relative difference of the last adversarial losses": round(last, 4),
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
