"""The only training loop: attack, descend, and the hooks in between."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from ..attacks import Attack
from ..core.errors import AdvlabError
from ..core.randomness import Rng, generator
from ..losses import PerExample
from ..threats import Threat
from .batches import checked_rows
from .hooks import Hook
from .objectives import Adversarial, Clean, Objective, StepInfo
from .run import Fit, OptimizerFactory, Run, make_optimizer
from .schedules import Constant, Schedule


def fit(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    steps: int,
    lr: float | Schedule | None = None,
    batch: int | None = None,
    loss: str | PerExample | None = None,
    ball: Threat | None = None,
    attack: Attack | None = None,
    objective: Objective | None = None,
    optimizer: torch.optim.Optimizer | OptimizerFactory | None = None,
    hooks: Sequence[Hook] = (),
    rng: Rng | None = None,
    reuse: bool = False,
) -> Fit:
    """Train a model in place: W <- W - lr * grad objective(W; x, x~, y), and what hooks add.

        fit(net, x, y, steps=500, lr=0.1, ball=Ball("linf", 0.1), hooks=[ProgressBar()])
        fit(stack, x, y, steps=500, lr=Cosine(lr=0.1), batch=100, optimizer=torch.optim.Adam,
            objective=TRADES(ball=ball, attack=PGD(steps=10), beta=3.0), hooks=[Project(set)])

    Args:
        model: a network, or a `Stack` of R networks, which train as each would alone.
        x: inputs (n, ...); for a stack (R, n, ...), a data set per replicate.
        y: labels (n,); for a stack (R, n).
        steps: how many steps to take.
        lr: the step size, or a `Schedule` of it. None if `optimizer` was made with its own.
        batch: rows per step and replicate, in a new order each epoch; None takes all.
        objective: what to descend, with its loss, threat set and attack inside. Without one, the
            next three arguments make it: `Adversarial` if there is a ball, else `Clean`.
        loss: a name or a function of outputs and labels; cross entropy by default.
        ball: the threat set around each input.
        attack: how x~ is found in the ball; ten steps of PGD by default.
        optimizer: a class of `torch.optim` (or a partial of it), or an optimizer made from the
            model's weights. Plain gradient descent by default. It must be elementwise.
        hooks: what else happens: probes, the audit, penalties, projections, checkpoints, ...
        rng: one generator, or one per replicate.
        reuse: whether to go on from a checkpoint of another run too (other data, code, settings),
            with a warning that says what differs. Its weights must fit the model.

    Returns:
        A `Fit`: the model, the log of losses and probes, and how the run ended.
    """
    if steps < 0:
        raise AdvlabError("steps must be 0 or more", steps)
    if objective is not None and not (loss is None and ball is None and attack is None):
        raise AdvlabError("an objective with its loss, ball and attack inside", "some beside it")
    data = checked_rows(model, x, y)
    schedule = lr if isinstance(lr, Schedule) or lr is None else Constant(lr=lr)
    run = Run(
        model=model,
        data=data,
        objective=objective or _objective(loss, ball, attack),
        optimizer=make_optimizer(model, optimizer, schedule, steps),
        schedule=schedule,
        steps=steps,
        batch=batch,
        hooks=hooks,
        rng=generator("fit") if rng is None else rng,
        reuse=reuse,
    )
    return train(run)


def train(run: Run) -> Fit:
    """The loop. Hooks see every step, and once more the gradient at the final weights."""
    with ExitStack() as stack:
        stack.enter_context(_in_train_mode(run.model))
        for hook in run.hooks:
            stack.enter_context(hook.during(run))
        while True:
            for hook in run.hooks:
                hook.before_step(run)
            context = run.context()
            values, grads = run.objective.value_and_grad(context, run.weights)
            run.record(values)
            info = StepInfo(context, values, list(grads), last=run.last)
            for hook in run.hooks:
                hook.after_gradient(run, info)
            if run.over:
                return run.result()
            run.descend(info.grads)
            for hook in run.hooks:
                hook.after_step(run)


@contextmanager
def _in_train_mode(model: nn.Module) -> Iterator[None]:
    """Train mode inside, each module's own mode back afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.train()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _objective(
    loss: str | PerExample | None, ball: Threat | None, attack: Attack | None
) -> Objective:
    """The objective that the short form of `fit` means."""
    given = {"loss": loss, "ball": ball, "attack": attack}
    about: dict = {name: part for name, part in given.items() if part is not None}
    if ball is None and attack is not None:
        raise AdvlabError("a ball for the attack to move in", "an attack alone")
    return Clean(**about) if ball is None else Adversarial(**about)
