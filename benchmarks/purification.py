"""The purification run, clean phase and adversarial phase, as a stack against plain autograd.

The plain way trains one seed after another with torch.optim.SGD and autograd, in the same batches
and with the same attack steps (it keeps the last point, not the worst, which is cheaper). Losses of
the clean phase must agree step by step, the adversarial losses at the end on average.

    python -m benchmarks.purification
"""

import json
import time

import torch
import torch.nn.functional as F
from torch import Tensor

from advlab.core.randomness import generator
from advlab.papers.purification.experiments._parts.presets import PRESETS, Phase, SparseProblem
from advlab.training.batches import Batches

SEEDS, TARGET, LIMIT = range(5), 3.0, 300.0
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
        Batches(len(x), preset.batch, 1),
    )
    losses = []
    for step in range(phase.steps):
        b = preset.bias.end if adversarial else preset.bias.at(step)
        points, labels = batches.next(x, y, rng)
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
    start = time.perf_counter()
    losses = run(problem)
    return time.perf_counter() - start, losses


def main(preset: str = "random") -> None:
    problem = SparseProblem.draw(PRESETS[preset], SEEDS, "benchmark/purification", tests=1)
    seconds, (clean, adversarial) = timed(stacked, problem)
    plain_seconds, (plain_clean, plain_adversarial) = timed(plain, problem)
    first = float((clean - plain_clean)[:CLOSE_STEPS].abs().max())
    last = abs(float(adversarial[-50:].mean() / plain_adversarial[-50:].mean()) - 1)
    if first > CLOSE or last > CLOSE_AT_END:
        raise SystemExit(f"the losses disagree: {first} at first, {last:.0%} at the end")
    report = {
        "benchmark": f"purification preset {preset}, {len(SEEDS)} seeds, both phases",
        "ratio": round(plain_seconds / seconds, 2),
        "target": TARGET,
        "seconds": {"stack": round(seconds, 1), "plain": round(plain_seconds, 1)},
        "limit seconds": LIMIT,
        "largest difference of the first clean losses": first,
        "relative difference of the last adversarial losses": round(last, 4),
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
