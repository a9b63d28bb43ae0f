"""Threat sets: what an adversary may do to an input. All geometry lives in this room.

Names are imported when first used: `norms` serves closed forms that do without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ball import Ball as Ball
    from .base import Threat as Threat
    from .cap import Cap as Cap
    from .feature_ball import FeatureBall as FeatureBall
    from .integers import Integers as Integers
    from .norms import Norm as Norm
    from .one_hot import OneHot as OneHot
    from .patch import Patch as Patch
    from .product import Product as Product
    from .union import Union as Union

_NAMES = {
    "Ball": "ball",
    "Cap": "cap",
    "FeatureBall": "feature_ball",
    "Integers": "integers",
    "Norm": "norms",
    "OneHot": "one_hot",
    "Patch": "patch",
    "Product": "product",
    "Threat": "base",
    "Union": "union",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f".{_NAMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])
