"""Torch's own layers with a start drawn from a generator that is an argument."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(rng: torch.Generator) -> Iterator[None]:
    """Layers made inside draw their start from `rng`; the global generator stays as it was.

    Torch's layers know the global generator only, so inside it is seeded by a number from `rng`.
    """
    seed = int(torch.randint(2**62, (), generator=rng, device=rng.device))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
