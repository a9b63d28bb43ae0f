"""A batch in parts: one after the other to save memory, or on several processes at once.

Each part has its own generator, and statistics of BatchNorm are those of a part, as on one of
several devices. So it does not matter who computes a part: k parts on one process or on k give the
same step, up to the order of sums.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import generator
from .objectives import StepContext, StepInfo

if TYPE_CHECKING:
    from .run import Run


class Cut:
    """The gradient of a run whose batches are cut into parts.

    Args:
        run: the run, whose `parts_of_batch` says how many; process r computes the parts r,
            r + count, ...
    """

    def __init__(self, run: "Run"):
        if run.replicates > 1 or not isinstance(run.rng, torch.Generator):
            raise AdvlabError("a single model, where a batch is cut into parts", "a stack")
        if run.parts_of_batch % run.processes.count:
            raise AdvlabError(
                f"parts of a batch that {run.processes.count} processes can share evenly",
                run.parts_of_batch,
            )
        if run.replays > 1:
            raise AdvlabError(
                "whole batches, where each is replayed and its perturbation kept from step to step",
                f"batches in {run.parts_of_batch} parts",
                "leave accumulate out, and train on one process",
            )
        self.run = run
        count = run.parts_of_batch
        seed = run.rng.initial_seed()
        self.rngs = [generator("part of a batch", seed, part, count) for part in range(count)]
        self.mine = range(run.processes.rank, count, run.processes.count)

    def gradient(self, whole: StepContext) -> StepInfo:
        """The mean over all rows of the batch, and its gradient."""
        run, context = self.run, whole
        xs, ys = (tensor.tensor_split(run.parts_of_batch) for tensor in (whole.x, whole.y))
        values = whole.x.new_zeros(run.replicates)
        grads = [torch.zeros_like(w) for w in run.weights]
        statistics = [buffer for buffer in run.model.buffers() if buffer.is_floating_point()]
        before = [buffer.clone() for buffer in statistics]
        moved = [torch.zeros_like(buffer) for buffer in statistics]
        counts = [buffer for buffer in run.model.buffers() if not buffer.is_floating_point()]
        at_first = [buffer.clone() for buffer in counts]
        for part in self.mine:
            if len(ys[part]) == 0:
                continue
            share = len(ys[part]) / len(whole.y)
            _put(statistics, before)
            _put(counts, at_first)
            context = replace(whole, x=xs[part], y=ys[part], rng=self.rngs[part], _kept={})
            value, grad = run.objective.value_and_grad(context, run.weights)
            values += share * value
            for total, one in zip([*grads, *moved], [*grad, *statistics], strict=True):
                total.add_(one, alpha=share)
        self._check_same(whole.x)
        run.processes.add_up([values, *grads, *moved])
        _put(statistics, moved)
        return StepInfo(context, values, grads, last=run.last)

    def _check_same(self, x: Tensor) -> None:
        """Refuse batches that differ from process to process: each takes parts of the same one."""
        processes = self.run.processes
        if processes.count == 1:
            return
        total = x.detach().double().sum().cpu()
        sums = torch.stack([total, total**2])
        processes.add_up([sums])
        # The variance over processes; sums of the same numbers differ by rounding at most.
        if processes.count * sums[1] - sums[0] ** 2 > 1e-14 * sums[0] ** 2:
            raise AdvlabError(
                "the same batches on every process, which share their parts",
                "other ones",
                "use no DistributedSampler, and seed the loader's generator alike",
            )

    def state_dict(self) -> dict:
        """The states of all generators, wherever their parts are computed."""
        states = torch.stack([rng.get_state() for rng in self.rngs]).to(torch.int64)
        for part in range(len(self.rngs)):
            if part not in self.mine:
                states[part] = 0
        self.run.processes.add_up([states])
        return {"rngs": states.to(torch.uint8)}

    def load_state_dict(self, state: dict) -> None:
        for rng, kept in zip(self.rngs, state["rngs"], strict=True):
            rng.set_state(kept.clone())


def _put(into: list[Tensor], values: list[Tensor]) -> None:
    for buffer, value in zip(into, values, strict=True):
        buffer.copy_(value)
