"""100 replicates as one stack against the same work as a plain PyTorch loop over seeds.

The plain way is what one would write first: for each seed a tensor, autograd for the attack and for
the step, torch.optim.SGD. The stack is what the figures run: one tensor program, attack and
gradient in closed form, and for d > n the span of the inputs. Beside them the general code on the
same stack: any model, the surrogate attack as the paper defines it, autograd. All must give the
same weights.

    python -m benchmarks.stacks
"""

import json

import torch

from advlab.attacks import FGM, Surrogate
from advlab.core.randomness import generators
from advlab.models import Linear, Stack
from advlab.papers.generalization.data import LinearModel, SparseVector
from advlab.papers.generalization.reductions import LinearAdversarial, Subspace
from advlab.threats import Ball
from advlab.training import Adversarial, fit

from .timing import interleaved

REPLICATES, EPS, TARGET = 100, 0.1, 15.0
SIZES = {
    "fig5 (n=1000, d=10)": (LinearModel(n=1000, d=10), 0.01, 0.1),
    "fig3 (n=20, d=1000)": (LinearModel(n=20, d=1000, theta0=SparseVector(k=10)), 0.001, 0.5),
}


def plain(x, y, lr: float, xi: float, steps: int) -> torch.Tensor:
    """Algorithm 1 with autograd, one seed after the other."""
    ends = []
    for data, target in zip(x, y, strict=True):
        theta = torch.zeros(data.shape[1], dtype=data.dtype, requires_grad=True)
        optimizer = torch.optim.SGD([theta], lr=lr)
        for _ in range(steps):
            clean = data.clone().requires_grad_()
            (g,) = torch.autograd.grad(((clean @ theta - target) ** 2).sum(), clean)
            moved = data + EPS * g / (g.norm(dim=1, keepdim=True) ** 2 + xi**2).sqrt()
            optimizer.zero_grad()
            ((moved @ theta - target) ** 2).mean().backward()
            optimizer.step()
        ends.append(theta.detach())
    return torch.stack(ends)


def stacked(x, y, lr: float, xi: float, steps: int) -> torch.Tensor:
    """The same 100 runs as the figures do them, rotation in and out included."""
    span = Subspace.of(x) if x.shape[2] > x.shape[1] else None
    small = x if span is None else span.into(x)
    stack = Stack([Linear.zero(small.shape[2]) for _ in range(len(x))])
    fit(
        stack, small, y, steps=steps, lr=lr,
        objective=LinearAdversarial(
            loss="squared", ball=Ball(norm="l2", radius=EPS), attack=Surrogate(xi=xi)
        ),
    )  # fmt: skip
    theta = stack.get_parameter("theta").detach()
    return theta if span is None else span.lift(theta)


def general(x, y, lr: float, xi: float, steps: int) -> torch.Tensor:
    """The same 100 runs by code that knows nothing of linear models."""
    stack = Stack([Linear.zero(x.shape[2]) for _ in range(len(x))])
    attack = Surrogate(xi=xi, inner=FGM(keep_worst=False), keep_worst=False)
    ball = Ball(norm="l2", radius=EPS)
    fit(
        stack, x, y, steps=steps, lr=lr,
        objective=Adversarial(loss="squared", ball=ball, attack=attack),
    )  # fmt: skip
    return stack.get_parameter("theta").detach()


def main(steps: int = 100, repeats: int = 5) -> None:
    for name, (data, lr, xi) in SIZES.items():
        x, y = data.sample_stack(generators("benchmark", seeds=range(REPLICATES)))
        wanted = plain(x, y, lr, xi, steps)
        apart = max(
            float((wanted - way(x, y, lr, xi, steps)).abs().max()) for way in (stacked, general)
        )
        if apart > 1e-5:
            raise SystemExit(f"{name}: the two ways disagree by {apart}")
        seconds = interleaved(
            {
                "plain": lambda: plain(x, y, lr, xi, steps),  # noqa: B023 (called at once)
                "stack": lambda: stacked(x, y, lr, xi, steps),  # noqa: B023
                "general": lambda: general(x, y, lr, xi, steps),  # noqa: B023
            },
            repeats,
        )
        ratio = seconds["plain"] / seconds["stack"]
        print(
            json.dumps(
                {
                    "benchmark": f"stack of {REPLICATES}, {name}", "ratio": round(ratio, 1),
                    "ratio of the general code": round(seconds["plain"] / seconds["general"], 2),
                    "target": TARGET, "seconds": {k: round(v, 4) for k, v in seconds.items()},
                    "steps": steps, "largest difference": apart,
                    "threads": torch.get_num_threads(),
                }
            )
        )  # fmt: skip


if __name__ == "__main__":
    main()
