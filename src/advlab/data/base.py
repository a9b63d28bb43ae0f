"""What every law of data shares: one draw from one generator, and stacks of independent draws."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from pydantic import PositiveInt

from ..core.config import Config
from ..core.errors import AdvlabError


class DataModel(Config):
    """A law to draw data sets of n examples from; a new one writes `sample` only."""

    n: PositiveInt

    @abstractmethod
    def sample(self, rng: torch.Generator, n: int | None = None) -> tuple:
        """One data set, a named tuple of tensors, of n examples (the model's own n by default)."""

    def sample_stack(self, generators: Sequence[torch.Generator], n: int | None = None) -> tuple:
        """One data set a generator along a new first axis; each has the bits it has alone."""
        if not generators:
            raise AdvlabError("a stack needs one generator per replicate", "none")
        # Drawn one by one, not as one batched product: a batched product may round differently.
        samples = [self.sample(rng, n) for rng in generators]
        return type(samples[0])(*(torch.stack(parts) for parts in zip(*samples, strict=True)))
