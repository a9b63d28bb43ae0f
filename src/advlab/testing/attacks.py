"""The laws of attacks."""

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..attacks import Attack, Attacked
from ..core.errors import AdvlabError
from ..core.inputs import Given, instance
from ..core.randomness import generator, normal
from ..losses import ModelLoss, cross_entropy
from ..threats import Ball, Cap, Integers, Product, Threat
from .law import Laws

ROWS = 6
THREATS: tuple[Threat, ...] = (
    Ball("linf", 0.3),
    Ball("l2", 0.5, box=(-2.0, 2.0)),
    Ball("l1", 1.0),
    Cap(0.5),
    Product([([0, 1], Ball("l2", 0.4)), ([2], Integers(1.0, step=0.5))], changes=1),
)
"""Balls of every norm, with a box and without, a set without a straight line, and one with gaps."""

Scene = Callable[[int], tuple[ModelLoss, Tensor]]
"""A seed to a loss and its clean inputs, as many rows each time."""


def check_attack(
    attack: Given[Attack],
    *,
    scene: Scene | None = None,
    threats: Sequence[Threat] = THREATS,
    features: int = 5,
    keeps_worst: bool = True,
    float32: bool = True,
    seed: int = 0,
) -> None:
    """Hold an attack to the laws that training and evaluation rely on.

    It stays in every threat set; what it returns costs what it says; where it `ascends` no row ends
    below its clean loss, nor below any point of the set whose loss it was told; at radius 0 nothing
    moves; the same generator gives the same bits and the global one is neither used nor moved; a
    row with a generator of its own does not depend on its company; model, gradients, inputs and
    labels are as they were; not-a-number is the worst loss there is; shapes and dtypes are kept.

    Args:
        attack: The attack, with settings that make it quick: it is called some forty times.
        scene: Makes the loss and inputs it is tried on, where it is not for every classifier; by
            default small networks of three classes. Inputs are brought to where those of a set
            lie, such as the unit sphere (`to_domain`).
        threats: The sets it is tried in.
        features: Of the default inputs.
        keeps_worst: Whether it promises the worst point whose loss it was told.
        float32: Whether it is tried in float32 too; one that holds a network of its own is not.
        seed: Of all draws.

    Raises:
        LawBroken: Naming the law, with numbers. It is an AssertionError too.

    Example:
        >>> from advlab.testing import check_attack
        >>> check_attack(MyAttack(steps=5))
    """
    instance("an attack", attack, Attack, "for example check_attack(PGD(steps=5))")
    laws = Laws(attack)
    given = scene if scene is not None else lambda k: default_scene(k, features)
    with _quiet():
        for number, threat in enumerate(threats):
            loss, x = given(seed + number)
            x = threat.to_domain(x)
            _inside_and_honest(laws, attack, loss, x, threat)
            if keeps_worst and attack.ascends:
                _worst_seen(laws, attack, loss, x, threat)
            _radius_zero(laws, attack, loss, x, threat)
        loss, x = given(seed)
        _repeats(laws, attack, loss, x, seed)
        _company(laws, attack, loss, x)
        _nothing_is_touched(laws, attack, loss, x)
        _not_a_number(laws, attack, loss, x)
        if float32:
            _single_precision(laws, attack, loss, x)


def default_scene(seed: int, features: int = 5) -> tuple[ModelLoss, Tensor]:
    """A small network of three classes, and inputs within (-2, 2).

    Args:
        seed: Of both.
        features: Of one input.
    """
    rng = generator("check_attack", "scene", seed)
    x = normal(torch.empty(ROWS, features, dtype=torch.float64), rng).clamp(-1.9, 1.9)
    y = torch.randint(0, 3, (ROWS,), generator=rng)
    net = nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    for weight in net.parameters():
        weight.data = normal(weight.data, rng) / math.sqrt(weight.shape[-1])
    return ModelLoss(net, y, cross_entropy), x


def _rng(seed: int = 0) -> torch.Generator:
    return generator("check_attack", "rng", seed)


def _inside_and_honest(
    laws: Laws, attack: Attack, loss: ModelLoss, x: Tensor, threat: Threat
) -> None:
    found = _called(laws, attack, loss, x, threat, _rng())
    laws.holds("it returns the shape and dtype it was given",
               found.x.shape == x.shape and found.x.dtype == x.dtype,
               f"{tuple(found.x.shape)} {found.x.dtype}")  # fmt: skip
    laws.holds("one loss per row", found.loss.shape == x.shape[:1], tuple(found.loss.shape))
    laws.holds(f"it stays in its threat set, {threat!r:.60}", threat.contains(found.x, x))
    with torch.no_grad():
        clean, there = loss(x), loss(found.x)
    scale = 1e-9 * (1 + there.abs())
    laws.close("the loss returned is the loss at the point returned", found.loss, there, scale)
    if attack.ascends:
        laws.at_least(
            "no row ends below its clean loss", found.loss, clean, 1e-12 * (1 + clean.abs())
        )


def _worst_seen(laws: Laws, attack: Attack, loss: ModelLoss, x: Tensor, threat: Threat) -> None:
    """Only points whose loss the attack was told count; what it tried for gradients need not."""
    told = _Told(loss)
    found = _called(laws, attack, told, x, threat, _rng())
    for point, value in told.seen:
        inside = threat.contains(point, x)
        reached = torch.where(inside, value, -torch.inf)
        laws.at_least("it returns the worst point that it saw", found.loss, reached,
                      1e-9 * (1 + value.abs()))  # fmt: skip


class _Told(ModelLoss):
    """A loss that remembers what it said, and of which points."""

    seen: list[tuple[Tensor, Tensor]]

    def __init__(self, loss: ModelLoss):
        super().__init__(loss.model, loss.y, loss.loss)
        object.__setattr__(self, "seen", [])

    def __call__(self, x: Tensor) -> Tensor:
        value = super().__call__(x)
        if len(x) == len(self.y):
            self.seen.append((x.detach().clone(), value.detach()))
        return value


def _radius_zero(laws: Laws, attack: Attack, loss: ModelLoss, x: Tensor, threat: Threat) -> None:
    found = _called(laws, attack, loss, x, threat.with_radius(0.0), _rng())
    laws.same("at radius 0 it returns the clean inputs", found.x, x)


def _repeats(laws: Laws, attack: Attack, loss: ModelLoss, x: Tensor, seed: int) -> None:
    ball = Ball("l2", 0.5)
    before = torch.get_rng_state()
    once = _called(laws, attack, loss, x, ball, _rng(seed))
    laws.same("it leaves the global generator alone", torch.get_rng_state(), before)
    try:
        torch.manual_seed(seed + 12345)
        again = _called(laws, attack, loss, x, ball, _rng(seed))
    finally:
        torch.set_rng_state(before)
    laws.same("the same generator gives the same points", again.x, once.x)


def _company(laws: Laws, attack: Attack, loss: ModelLoss, x: Tensor) -> None:
    order = torch.arange(len(x) - 1, -1, -1)
    for ball in (Ball("linf", 0.3), Ball("l2", 0.5, box=(-2.0, 2.0))):
        there = _called(laws, attack, loss, x, ball, [_rng(k) for k in range(len(x))])
        rngs = [_rng(int(k)) for k in order]
        back = _called(laws, attack, loss.rows(order), x[order], ball, rngs)
        law = "a row with a generator of its own does not depend on the order of rows"
        laws.close(law, back.x, there.x[order], 1e-9)
        alone = _called(laws, attack, loss.rows(order[-1:]), x[:1], ball, [_rng(0)])
        law = "a row with a generator of its own is the same alone"
        laws.close(law, alone.x, there.x[:1], 1e-9)


def _nothing_is_touched(laws: Laws, attack: Attack, loss: ModelLoss, x: Tensor) -> None:
    model = _with_state(loss.model, x)
    own = ModelLoss(model, loss.y.clone(), loss.loss)
    given, labels = x.clone(), loss.y.clone()
    before = copy.deepcopy(model) if isinstance(model, nn.Module) else None
    grads = [_copied(one.grad) for one in model.parameters()] if before is not None else []
    _called(laws, attack, own, given, Ball("l2", 0.5), _rng())
    laws.same("it leaves the inputs as they were", given, x)
    laws.same("it leaves the labels as they were", own.y, labels)
    if before is None or not isinstance(model, nn.Module):
        return
    for (name, now), (_, was) in zip(model.named_modules(), before.named_modules(), strict=True):
        laws.holds(
            "it leaves train and eval modes as they were", now.training == was.training, name
        )
    for name, value in before.state_dict().items():
        laws.same(f"it leaves parameters and buffers as they were ({name})",
                  model.state_dict()[name], value)  # fmt: skip
    for (name, now), was in zip(model.named_parameters(), grads, strict=True):
        gone = now.grad is None or was is None
        alike = now.grad is was if gone else torch.equal(now.grad, was)  # type: ignore[arg-type]
        laws.holds("it leaves gradients as they were", alike, name)
        laws.holds("parameters still require gradients", now.requires_grad, name)


def _copied(grad: Tensor | None) -> Tensor | None:
    return None if grad is None else grad.clone()


def _with_state(model: Any, x: Tensor) -> Any:
    """A network with statistics, dropout and gradients of its own in front of the model."""
    if not isinstance(model, nn.Module):
        return model
    front = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(x[0].numel()), nn.Dropout(0.5))
    whole = nn.Sequential(front, nn.Unflatten(1, x.shape[1:]), copy.deepcopy(model)).to(x)
    front[2].eval()
    state = torch.get_rng_state()
    whole(x).sum().backward()
    torch.set_rng_state(state)
    return whole


def _not_a_number(laws: Laws, attack: Attack, loss: ModelLoss, x: Tensor) -> None:
    """Scores that are no numbers wherever the input is not the clean one."""

    def broken(point: Tensor) -> Tensor:
        moved = (point != x[: len(point)]).flatten(1).any(1) if len(point) == len(x) else None
        scores = loss.model(point)
        wide = [-1] + [1] * (scores.ndim - 1)
        return scores if moved is None else torch.where(moved.reshape(wide), torch.nan, scores)

    found = _called(
        laws, attack, ModelLoss(broken, loss.y, loss.loss), x, Ball("linf", 0.3), _rng()
    )
    laws.holds("a loss is never returned as not-a-number", ~found.loss.isnan())
    moved = (found.x != x).flatten(1).any(1)
    laws.holds("where the loss is not a number it is the worst there is, infinity",
               ~moved | (found.loss == torch.inf))  # fmt: skip


def _single_precision(laws: Laws, attack: Attack, loss: ModelLoss, x: Tensor) -> None:
    if not isinstance(loss.model, nn.Module) or loss.y.is_floating_point():
        return
    single = ModelLoss(copy.deepcopy(loss.model).float(), loss.y, loss.loss)
    ball = Ball("linf", 0.3)
    found = _called(laws, attack, single, x.float(), ball, _rng())
    laws.holds("float32 in, float32 out", found.x.dtype == found.loss.dtype == torch.float32,
               f"{found.x.dtype}, {found.loss.dtype}")  # fmt: skip
    laws.holds("it stays in its threat set in float32", ball.contains(found.x, x.float()))


def _called(
    laws: Laws, attack: Attack, loss: ModelLoss, x: Tensor, threat: Threat, rng: Any
) -> Attacked:
    """The answer; an attack that refuses its own point is told by that law."""
    try:
        found = attack(loss, x, threat, rng=rng)
    except AdvlabError as error:
        if "must return points of its threat set" not in str(error):
            raise
        laws.holds(f"it stays in its threat set, {threat!r:.60}", False, error)
        raise
    laws.holds("it returns an Attacked", isinstance(found, Attacked), type(found).__name__)
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Batch norm and attacks about special models say things that are no news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
