"""A laboratory for adversarial training: theory, attacks, training and measurement side by side.

Names are imported when first used, so `import advlab` is light:

    import advlab
    adv = advlab.attack(model, x, y, eps=8 / 255)
    result = advlab.evaluate(model, x, y, advlab.threats.Ball("linf", 8 / 255, box=(0, 1)))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import attacks as attacks
    from . import certify as certify
    from . import data as data
    from . import evaluation as evaluation
    from . import lab as lab
    from . import linear as linear
    from . import losses as losses
    from . import measure as measure
    from . import models as models
    from . import papers as papers
    from . import reductions as reductions
    from . import report as report
    from . import testing as testing
    from . import theory as theory
    from . import threats as threats
    from . import training as training
    from .evaluation import attack as attack
    from .evaluation import compare as compare
    from .evaluation import curve as curve
    from .evaluation import evaluate as evaluate
    from .models import load_model as load  # noqa: F401
    from .training import fit as fit
    from .training import train as train

__version__ = "0.1.0"

_OBJECTS = {
    "attack": "advlab.evaluation",
    "compare": "advlab.evaluation",
    "curve": "advlab.evaluation",
    "evaluate": "advlab.evaluation",
    "fit": "advlab.training",
    "load": "advlab.models:load_model",
    "train": "advlab.training",
}
"""The module of each object, and after a colon its name there where that is another."""
_ROOMS = (
    "threats",
    "losses",
    "data",
    "models",
    "attacks",
    "certify",
    "evaluation",
    "training",
    "measure",
    "linear",
    "theory",
    "reductions",
    "report",
    "lab",
    "papers",
    "testing",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"advlab.{name}")
    if name in _OBJECTS:
        module, _, inside = _OBJECTS[name].partition(":")
        return getattr(import_module(module), inside or name)
    raise AttributeError(f"module 'advlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_OBJECTS, *_ROOMS])
