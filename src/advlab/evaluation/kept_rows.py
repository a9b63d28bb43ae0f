"""Rows of a stream that are wanted after it has gone by: for the checks and for pictures."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from .checks.context import FEW, CheckContext
from .examples import Examples
from .outcomes import KEPT, Outcomes


@dataclass
class EvenSample:
    """Rows spread evenly over all that were offered: at least `most` of them, at most twice that.

    Every stride-th row is kept; when there are too many, every second one goes and the stride
    doubles.
    """

    most: int
    rows: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    stride: int = 1
    seen: int = 0

    def offer(self, row: int, x: Tensor, y: Tensor) -> None:
        """Keep this row, if its turn is now."""
        if self.seen % self.stride == 0:
            self.rows[row] = x.clone(), y.clone()
        self.seen += 1
        if len(self.rows) > 2 * self.most:
            self.rows = dict(list(self.rows.items())[::2])
            self.stride *= 2


class KeptRows:
    """Of a stream: some rows, some that were neither broken nor proved robust, and those shown.

    Of examples in memory it keeps nothing: they are all there.

    Args:
        examples: the examples.
        all_inputs: whether to keep all inputs of a stream too.
    """

    def __init__(self, examples: Examples, all_inputs: bool = False):
        self.streamed, self.all_inputs = examples.streamed, all_inputs
        self.inputs: list[Tensor] = []
        self.any, self.standing = EvenSample(FEW), EvenSample(FEW)
        self.shown: dict[int, tuple[Tensor, Tensor]] = {}

    def note(self, start: int, x: Tensor, y: Tensor, part: Outcomes) -> None:
        """Look at a batch that is done, and the outcomes of its rows."""
        if not self.streamed:
            return
        if self.all_inputs:
            self.inputs.append(x)
        stands = (part.uncertain & ~part.broken).tolist()
        for place, stood in enumerate(stands):
            self.any.offer(start + place, x[place], y[place])
            if stood:
                self.standing.offer(start + place, x[place], y[place])
        for place in part.shown[:KEPT].tolist():
            self.shown[start + place] = x[place].clone(), y[place].clone()

    def prune(self, outcomes: Outcomes) -> None:
        """Forget rows that are shown no more."""
        wanted = set(outcomes.shown.tolist())
        self.shown = {row: one for row, one in self.shown.items() if row in wanted}

    def context(self, context: CheckContext, outcomes: Outcomes) -> CheckContext:
        """The context after the attack: of a stream with the rows that were kept."""
        if not self.streamed:
            return replace(context, outcomes=outcomes)
        others = {**self.standing.rows, **self.shown}
        kept = {**self.any.rows, **{k: v for k, v in others.items() if k not in self.any.rows}}
        rows = torch.tensor(list(kept))
        return replace(
            context,
            x=torch.stack([x for x, _ in kept.values()]),
            y=torch.stack([y for _, y in kept.values()]),
            outcomes=outcomes.take(rows),
            rows=rows,
            unchosen=len(self.any.rows),
        )
