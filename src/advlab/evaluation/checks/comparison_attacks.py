"""Attacks that need no gradient, or another model's: if they win, gradients hide something."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ...attacks import BPDA, PGD, Attack, MemberResult, Square
from ...attacks._engine.cascade import search
from ...attacks._engine.channels_last import relaid
from ..evaluation import CheckWarning, total
from ..outcomes import Counterexample
from ..suites import queries_of, without_gradient
from .context import CheckContext, notable
from .smoothed_models import smoothed_models

BLACK_BOX = Square(queries=300)
TRANSFERRED = PGD(steps=10, step_size=0.25)
AT_ONCE = 512
"""Rows of a batch, where all that are left are attacked."""
NOISE = 0.25
"""Width of the noise as a fraction of the radius, in linf; as long as that in the other norms."""


@dataclass
class ComparisonAttacks:
    """Other attacks, each on the same rows that the evaluated one left, and what they found."""

    context: CheckContext
    warnings: list[CheckWarning] = field(default_factory=list)
    members: list[MemberResult] = field(default_factory=list)
    counterexamples: list[Counterexample] = field(default_factory=list)

    def black_box(self) -> None:
        """The plan's own attacks without gradients, after those with, or one that is tried here."""
        members, outcomes = self.context.plan.members, self.context.outcomes
        if not self.context.plan.uses_gradient:
            return
        own = [n for place, n in enumerate(members) if place and not members[n].uses_gradient]
        if own and outcomes is not None:
            results = [one for one in outcomes.members if one.name in own]
            broken, rows = sum(r.broken for r in results), sum(r.rows for r in results)
        else:
            broken, rows = self._try("Square (check)", BLACK_BOX, None)
        if notable(broken, rows):
            text = (
                f"a black-box attack broke {broken} of {rows} rows that attacks by gradient left: "
                "gradients are masked or the attack is weak"
            )
            self.warnings.append(CheckWarning("black_box", text))

    def transfers(self) -> None:
        """Perturbations made on smoother models, and on the other model where there is one."""
        sources = []
        if self.context.plan.uses_gradient:
            fast = self.context.climbed(self.context.standing).model
            sources = list(smoothed_models(fast, self._noise()))
        if self.context.transfer is not None:
            sources.insert(0, ("the other model", self.context.transfer))
        for name, source in sources:
            broken, rows = self._try(f"transfer from {name} (check)", TRANSFERRED, source)
            if notable(broken, rows):
                text = (
                    f"points found on {name} broke {broken} of {rows} rows that the attack on the "
                    "model itself left: its gradients are masked or the attack is weak"
                )
                self.warnings.append(CheckWarning("transfer", text))

    def unmask(self) -> None:
        """Where gradients are masked: those of a stand-in, and none at all, on all rows left."""
        plan, ball = self.context.plan, self.context.ball
        left = self.context.all_standing
        for name, attack in {
            "BPDA": BPDA(),
            **without_gradient(ball, queries_of(plan.name), labels=False),
        }.items():
            known = torch.tensor([one.row for one in self.counterexamples], dtype=left.dtype)
            if name not in plan.members:
                for some in left[~torch.isin(left, known.to(left.device))].split(AT_ONCE):
                    self._try(f"{name} (check)", attack, None, some)
        self.members[:] = total(self.members)

    def _try(
        self,
        name: str,
        attack: Attack,
        source: Callable[[Tensor], Tensor] | None,
        rows: Tensor | None = None,
    ) -> tuple[int, int]:
        """How many of some rows that were left it broke, and how many there were."""
        context, begun = self.context, time.perf_counter()
        index = context.standing if rows is None else rows
        if len(index) == 0:
            return 0, 0
        x, climbed = context.inputs(index), context.climbed(index)
        if source is not None:
            climbed = relaid(context.margin(index).under(source), x)
        found, *passes = search(attack, climbed, x, context.ball, context.rng(name))
        margins, errors = context.judged(index, found.x)
        known = {one.row for one in self.counterexamples}
        broken = errors.nonzero()[:, 0].tolist()
        for place in broken:
            row, value = int(index[place]), float(margins[place])
            if row not in known:
                self.counterexamples.append(Counterexample(row, name, value, found.x[place].cpu()))
        seconds = time.perf_counter() - begun
        self.members.append(MemberResult(name, len(x), len(broken), seconds, *passes))
        return len(broken), len(x)

    def _noise(self) -> float:
        ball = self.context.ball
        if not ball.convex:
            return 0.0
        # As long as the radius in the set's own norm, spread over all coordinates.
        return NOISE * ball.radius / self.context.x[0].numel() ** (1 / ball.order)
