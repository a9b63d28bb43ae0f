"""One batch: who is wrong from the start, who is provably safe, and whom the attack breaks."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..attacks import Attack, Attacked
from ..certify import Certificate, certify
from ..core.errors import AdvlabError
from ..core.randomness import Rng
from ..losses import ModelLoss, margin
from ..threats import Threat
from .evaluation import Effort
from .outcomes import CLEAN, KEPT, LEFT, Rows
from .suites import Plan

Model = Callable[[Tensor], Tensor]
Certificates = Sequence[str | Certificate] | None
"""Names or certificates to try; all that know the model if None."""


@dataclass
class Meter:
    """Rows that went through a model since it was put on; `tick` is called at each pass."""

    tick: Callable[[], None]
    forwards: int = 0
    backwards: int = 0

    def __call__(self, module: nn.Module, inputs: tuple) -> None:
        rows = len(inputs[0])
        self.forwards += rows
        self.backwards += rows * (torch.is_grad_enabled() and inputs[0].requires_grad)
        self.tick()


@contextmanager
def metered(model: Model, tick: Callable[[], None] = lambda: None) -> Iterator[Meter | None]:
    """Count rows by a hook, which leaves the model itself to attacks and certificates."""
    if not isinstance(model, nn.Module) or isinstance(model, torch.jit.ScriptModule):
        yield None
        return
    meter = Meter(tick)
    hook = model.register_forward_pre_hook(meter)
    try:
        yield meter
    finally:
        hook.remove()


def strike(
    name: str, attack: Attack, loss: ModelLoss, x: Tensor, ball: Threat, rng: Rng,
    meter: Meter | None,
) -> tuple[Attacked, Effort]:  # fmt: skip
    """An attack's worst points, and its account."""
    start = time.perf_counter()
    before = (meter.forwards, meter.backwards) if meter else None
    found = attack(loss, x, ball, rng=rng)
    passes: tuple[int | None, int | None] = (None, None)
    if meter is not None and before is not None:
        passes = (meter.forwards - before[0], meter.backwards - before[1])
    seconds, broken = time.perf_counter() - start, int((found.loss >= 0).sum())
    return found, Effort(name, len(x), broken, seconds, *passes)


def examine(
    model: Model, x: Tensor, y: Tensor, ball: Threat, plan: Plan,
    certificates: Certificates, rng: Rng, tick: Callable[[str], None] = lambda name: None,
) -> Rows:  # fmt: skip
    """All that is found out about some rows. Work goes only where it counts.

    Rows wrong from the start are not attacked. What the first attack, the cheapest, leaves is
    certified, and the others are sent to what is then neither broken nor proved safe.
    """
    batch = _Batch(model, x, y, ball, rng)
    for place, (name, attack) in enumerate(plan.members.items()):
        with metered(model, lambda name=name: tick(name)) as meter:
            batch.strike(name, attack, meter)
        if place == 0:
            batch.certify(certificates, tick)
    return batch.rows()


class _Batch:
    """Rows at work: what is known of each grows with every step."""

    def __init__(self, model: Model, x: Tensor, y: Tensor, ball: Threat, rng: Rng):
        self.loss, self.x, self.ball, self.rng = ModelLoss(model, y, margin), x, ball, rng
        with torch.no_grad():
            self.clean = _finite(self.loss(x))
        self.worst, self.points = self.clean.clone(), x.clone()
        self.bound = torch.full_like(self.clean, float("inf"))
        self.proof = [""] * len(x)
        self.fate = [CLEAN if wrong else LEFT for wrong in (self.clean >= 0).tolist()]
        self.efforts: list[Effort] = []
        self.refused: dict[str, str] = {}
        self.certifying = 0.0

    @property
    def open(self) -> Tensor:
        """Rows that are neither broken nor proved safe."""
        return ((self.worst < 0) & (self.bound >= 0)).nonzero()[:, 0]

    def strike(self, name: str, attack: Attack, meter: Meter | None) -> None:
        index = self.open
        if len(index) == 0:
            return
        loss = self.loss.rows(index)
        found, effort = strike(name, attack, loss, self.x[index], self.ball, self.rng, meter)
        # An attack that does not ascend may end below the clean input; that stays the worst then.
        better = found.loss > self.worst[index]
        worse = index[better]
        self.worst[worse], self.points[worse] = found.loss[better], found.x[better]
        for row in index[found.loss >= 0].tolist():
            self.fate[row] = name
        self.efforts.append(effort)

    def certify(self, certificates: Certificates, tick: Callable[[str], None]) -> None:
        index = self.open
        if len(index) == 0:
            return
        start = time.perf_counter()
        loss = self.loss.rows(index)
        found = certify(
            loss.model, self.x[index], loss.y, self.ball, certificates,
            progress=lambda name, done, given: tick(name),
        )  # fmt: skip
        self.certifying += time.perf_counter() - start
        self.bound[index] = found.bound.to(self.bound)
        self.refused |= found.refused
        for row, name in zip(index.tolist(), found.by, strict=True):
            self.proof[row] = name

    def rows(self) -> Rows:
        lost = self.worst.masked_fill((self.clean >= 0) | (self.worst < 0), float("-inf"))
        order = lost.sort(descending=True, stable=True).indices[:KEPT]
        shown = order[lost[order] > float("-inf")]
        return Rows(
            self.clean, self.worst, self.bound, self.fate, self.proof, shown,
            self.points[shown], self.efforts, self.refused, self.certifying,
        )  # fmt: skip


def _finite(margins: Tensor) -> Tensor:
    bad = ~torch.isfinite(margins)
    if bool(bad.any()):
        raise AdvlabError(
            "finite outputs",
            f"NaN or infinity from the model for {int(bad.sum())} of {len(bad)} inputs",
        )
    return margins
