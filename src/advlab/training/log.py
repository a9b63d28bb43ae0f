"""What a run wrote down while it trained."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl
import torch
from torch import Tensor


@dataclass
class Log:
    """The loss at every step and the probes at theirs, each with one column per replicate."""

    loss: list[Tensor] = field(default_factory=list)
    probes: dict[str, list[Tensor]] = field(default_factory=dict)
    """The values of each probe, in the order of its steps."""
    steps: dict[str, list[int]] = field(default_factory=dict)
    """The steps at which each probe was taken."""

    @property
    def probe_steps(self) -> list[int]:
        """The steps at which probes were taken, ascending; all steps if there are no probes."""
        if not self.steps:
            return list(range(len(self.loss)))
        return sorted({step for steps in self.steps.values() for step in steps})

    def losses(self) -> Tensor:
        """(steps + 1, replicates): the objective at the weights of each step."""
        return torch.stack(self.loss)

    def probe(self, name: str) -> Tensor:
        """(times the probe was taken, replicates, ...): the values of one probe."""
        return torch.stack(self.probes[name])

    def table(self, seeds: Sequence[int] | None = None) -> pl.DataFrame:
        """One row per probe step and replicate: step, seed, loss and every probe that is a number.

        A probe that was not taken at a step of the table has NaN there.
        """
        replicates, steps = len(self.loss[0]), self.probe_steps
        seeds = range(replicates) if seeds is None else seeds
        columns: dict[str, object] = {
            "step": torch.tensor(steps).repeat_interleave(replicates).numpy(),
            "seed": list(seeds) * len(steps),
            "loss": self.losses()[steps].flatten().double().numpy(),
        }
        for name, taken in self.probes.items():
            if taken and taken[0].ndim == 1:
                at = dict(zip(self.steps[name], taken, strict=True))
                nothing = torch.full_like(taken[0], torch.nan, dtype=torch.float64)
                values = torch.stack([at.get(step, nothing).double() for step in steps])
                columns[name] = values.flatten().numpy()
        return pl.DataFrame(columns)

    def state_dict(self) -> dict:
        return {
            "loss": self.losses() if self.loss else None,
            "probes": {name: torch.stack(taken) for name, taken in self.probes.items() if taken},
            "steps": self.steps,
        }

    def load_state_dict(self, state: dict) -> None:
        self.loss = [] if state["loss"] is None else list(state["loss"])
        self.probes = {name: list(state["probes"].get(name, ())) for name in state["steps"]}
        self.steps = state["steps"]
