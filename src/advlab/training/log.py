"""What a run wrote down while it trained."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl
import torch
from torch import Tensor


@dataclass
class Log:
    """The loss at every step and the probes at theirs, each with one column a replicate."""

    loss: list[Tensor] = field(default_factory=list)
    probe_steps: list[int] = field(default_factory=list)
    probes: dict[str, list[Tensor]] = field(default_factory=dict)

    def losses(self) -> Tensor:
        """(steps + 1, replicates): the objective at the weights of each step."""
        return torch.stack(self.loss)

    def probe(self, name: str) -> Tensor:
        """(probes taken, replicates, ...)"""
        return torch.stack(self.probes[name])

    def table(self, seeds: Sequence[int] | None = None) -> pl.DataFrame:
        """One row a probe step and replicate: step, seed, loss and every probe that is a number."""
        replicates = len(self.loss[0])
        seeds = range(replicates) if seeds is None else seeds
        columns: dict[str, object] = {
            "step": torch.tensor(self.probe_steps).repeat_interleave(replicates).numpy(),
            "seed": list(seeds) * len(self.probe_steps),
            "loss": self.losses()[self.probe_steps].flatten().double().numpy(),
        }
        for name in self.probes:
            values = self.probe(name)
            if values.ndim == 2:
                columns[name] = values.flatten().double().numpy()
        return pl.DataFrame(columns)
