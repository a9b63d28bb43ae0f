"""Feature purification: how adversarial training performs robust deep learning (Allen-Zhu, Li).

The problem that most experiments train on is imported from here, when first used: `Preset`,
`PRESETS`, `SparseProblem` and `scaled`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .experiments._parts.presets import PRESETS as PRESETS
    from .experiments._parts.presets import Preset as Preset
    from .experiments._parts.presets import SparseProblem as SparseProblem
    from .experiments._parts.presets import scaled as scaled

_PUBLIC = ("PRESETS", "Preset", "SparseProblem", "scaled")


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.experiments._parts.presets"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
