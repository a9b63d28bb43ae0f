"""The only training loop: attack, descend, and the hooks in between."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from ..attacks import Attack
from ..attacks.base import check_threat
from ..core import inputs
from ..core.errors import AdvlabError
from ..core.inputs import Given, TensorLike
from ..core.randomness import Rng, generator
from ..losses import PerExample, outputs_of, resolve
from ..threats import Threat
from .batches import Batches, checked_batches
from .freed_memory import keep_freed_memory
from .hooks import Hook
from .objectives import Adversarial, Clean, Objective
from .processes import present
from .run import Fit, OptimizerFactory, Run, Transform, make_optimizer, trained_weights
from .schedules import Constant, Schedule


def fit(
    model: Given[nn.Module],
    x: Given[Any],
    y: Given[TensorLike | None] = None,
    *,
    steps: Given[int | None] = None,
    epochs: Given[float | None] = None,
    lr: Given[float | Schedule | None] = None,
    batch: Given[int | None] = None,
    loss: Given[str | PerExample | None] = None,
    ball: Given[Threat | None] = None,
    attack: Given[Attack | None] = None,
    objective: Given[Objective | None] = None,
    optimizer: Given[Optimizer | OptimizerFactory | None] = None,
    hooks: Given[Sequence[Hook]] = (),
    rng: Given[Rng | int | None] = None,
    transform: Given[Transform | None] = None,
    accumulate: Given[int | None] = None,
    reuse: bool = False,
) -> Fit:
    """Train a model in place: W <- W - lr * grad objective(W; x, x~, y), and what hooks add.

        fit(net, x, y, steps=500, lr=0.1, ball=Ball("linf", 0.1), hooks=[ProgressBar()])
        fit(net, DataLoader(dataset, 128, shuffle=True), epochs=15, lr=0.1, ball=ball)
        fit(stack, x, y, steps=500, lr=Cosine(lr=0.1), batch=100, optimizer=torch.optim.Adam,
            objective=TRADES(ball=ball, attack=PGD(steps=10), beta=3.0), hooks=[Project(set)])

    Args:
        model: a network, or a `Stack` of R networks, which train as each would alone.
        x: inputs (n, ...), a tensor, array or lists; for a stack (R, n, ...), a set per replicate.
            Or, with y left out, a DataLoader, a Dataset or any other data that bring both.
        y: labels (n,); for a stack (R, n). Shares of classes (n, k) go with a loss for them.
        steps: how many steps to take.
        epochs: how many passes over the data to make, instead of steps.
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
        rng: one generator, or one per replicate; a whole number is a seed.
        transform: what is done to the inputs of each batch before they are attacked: a function of
            inputs and generator, such as `data.augment.Flip()`.
        accumulate: into how many parts each batch is cut, whose gradients are added up: less
            memory, and BatchNorm sees a part. Several processes share the parts, which must be as
            many, or a multiple; None is one for each process.
        reuse: whether to go on from a checkpoint of another run too (other data, code, settings),
            with a warning that says what differs. Its weights must fit the model.

    Returns:
        A `Fit`: the model, the log of losses and probes, and how the run ended.
    """
    batch = None if batch is None else inputs.count("batch", batch)
    _check_kinds(model, objective, optimizer, hooks)
    if objective is not None and not (loss is None and ball is None and attack is None):
        raise AdvlabError("an objective with its loss, ball and attack inside", "some beside it")
    batches = checked_batches(model, x, y, batch)
    objective = objective or _objective(loss, ball, attack)
    steps = _checked_steps(steps, epochs, batches, objective.replays)
    schedule = lr if isinstance(lr, Schedule) or lr is None else Constant(lr=_rate(lr))
    run = Run(
        model=model,
        batches=batches,
        objective=objective,
        optimizer=make_optimizer(model, optimizer, schedule, steps),
        schedule=schedule,
        steps=steps,
        batch=batch,
        hooks=hooks,
        rng=generator("fit") if rng is None else inputs.randomness(rng),
        transform=transform,
        parts_of_batch=present().count
        if accumulate is None
        else inputs.count("accumulate", accumulate),
        processes=present(),
        reuse=reuse,
    )
    try:
        return train(run)
    except AdvlabError:
        raise
    except inputs.TROUBLES:
        _explain(run)
        raise


def _explain(run: Run) -> None:
    """Tell a model or a loss that cannot take the data, in one line, from a mistake elsewhere."""
    x, y = (part.to(run.device) for part in run.batches.first())
    wanted = f"a model that takes inputs of shape {tuple(x.shape)} and {x.dtype}"
    try:
        with torch.no_grad():
            outputs = outputs_of(run.model, x)
            wanted = f"a loss of outputs {tuple(outputs.shape)} and labels {tuple(y.shape)}"
            resolve(run.objective.loss)(outputs, y)
    except inputs.TROUBLES as cause:
        raise AdvlabError(wanted, inputs.whole_line(cause)) from cause


def _checked_steps(
    steps: Given[int | None], epochs: Given[float | None], batches: Batches, replays: int
) -> int:
    if (steps is None) == (epochs is None):
        raise AdvlabError("steps or epochs, one of the two", "neither" if steps is None else "both")
    if epochs is None:
        return inputs.count("steps", steps, 0)
    if batches.per_epoch is None:
        raise AdvlabError("steps, where the data do not know how many batches they have", "epochs")
    if isinstance(epochs, bool) or not isinstance(epochs, int | float) or not 0 < epochs < math.inf:
        raise AdvlabError("epochs as a number above 0", f"{epochs!r:.60}")
    return max(1, round(epochs * batches.per_epoch * replays))


def _rate(lr: Given[float]) -> Given[float]:
    if isinstance(lr, bool):
        raise AdvlabError("lr as a number or a Schedule", lr)
    return lr


def _check_kinds(
    model: Given[nn.Module], objective: Given[Objective | None], optimizer: object, hooks: object
) -> None:
    """Refuse what is not of the kind that its name says."""
    inputs.instance("a model that is a torch.nn.Module", model, nn.Module, "")
    inputs.check_weights(model)
    trained_weights(model)
    if objective is not None:
        inputs.instance("an objective", objective, Objective, "for example Adversarial(ball=ball)")
    if not (optimizer is None or callable(optimizer) or isinstance(optimizer, Optimizer)):
        raise AdvlabError("an optimizer, or a class of torch.optim", f"{optimizer!r:.60}")
    if not isinstance(hooks, Sequence) or not all(isinstance(hook, Hook) for hook in hooks):
        raise AdvlabError("hooks as a list of hooks", f"{hooks!r:.60}", "for example [Probe(...)]")


def train(run: Run) -> Fit:
    """The loop. Hooks see every step, and once more the gradient at the final weights."""
    keep_freed_memory()
    with ExitStack() as stack:
        stack.enter_context(_in_train_mode(run.model))
        for hook in run.hooks:
            stack.enter_context(hook.during(run))
        while True:
            for hook in run.hooks:
                hook.before_step(run)
            info = run.gradient()
            run.record(info.values)
            for hook in run.hooks:
                hook.after_gradient(run, info)
            run.agree()
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
    loss: Given[str | PerExample | None],
    ball: Given[Threat | None],
    attack: Given[Attack | None],
) -> Objective:
    """The objective that the short form of `fit` means."""
    if ball is not None:
        check_threat(ball)
    if attack is not None:
        inputs.instance("an attack", attack, Attack, "for example PGD(steps=10)")
    given = {"loss": loss, "ball": ball, "attack": attack}
    about: dict = {name: part for name, part in given.items() if part is not None}
    if ball is None and attack is not None:
        raise AdvlabError("a ball for the attack to move in", "an attack alone")
    return Clean(**about) if ball is None else Adversarial(**about)
