"""The generators that belong to nobody: torch's, numpy's and Python's own."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def global_randomness() -> dict:
    """The states of the generators that belong to nobody: of torch, its GPUs, numpy and Python."""
    _, key, *gauss = np.random.get_state()
    version, words, spare = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [torch.from_numpy(np.asarray(key).astype(np.int64)), *gauss],
        "python": [version, torch.tensor(words), spare],
    }


def set_global_randomness(state: Mapping[str, Any]) -> None:
    """Put them back to where `global_randomness` found them."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.device_count() == len(state["cuda"]):
        torch.cuda.set_rng_state_all(state["cuda"])
    key, *gauss = state["numpy"]
    np.random.set_state(("MT19937", key.numpy().astype(np.uint32), *gauss))
    version, words, spare = state["python"]
    random.setstate((version, tuple(words.tolist()), spare))
