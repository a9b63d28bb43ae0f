"""Published ways to train, one per file: objective, attack, optimizer and schedule."""

from ...core.registry import Registry
from .base import AttackedRecipe as AttackedRecipe
from .base import Recipe as Recipe
from .base import Stage as Stage
from .clean import CleanRecipe as CleanRecipe
from .clean_then_adversarial import CleanThenAdversarialRecipe as CleanThenAdversarialRecipe
from .fast import FastRecipe as FastRecipe
from .free import FreeRecipe as FreeRecipe
from .mart import MARTRecipe as MARTRecipe
from .mixed import MixedRecipe as MixedRecipe
from .pgd import PGDRecipe as PGDRecipe
from .reading import as_table as as_table
from .reading import from_table as from_table
from .reading import recipe as recipe
from .reading import with_settings as with_settings
from .smoothadv import SmoothAdvRecipe as SmoothAdvRecipe
from .stages import StagesRecipe as StagesRecipe
from .surrogate import SurrogateRecipe as SurrogateRecipe
from .trades import TRADESRecipe as TRADESRecipe

RECIPES: Registry[type[Recipe]] = Registry(
    "advlab.recipes",
    Recipe,
    {
        "clean": CleanRecipe,
        "pgd": PGDRecipe,
        "fast": FastRecipe,
        "free": FreeRecipe,
        "trades": TRADESRecipe,
        "mart": MARTRecipe,
        "smoothadv": SmoothAdvRecipe,
        "surrogate": SurrogateRecipe,
        "clean_then_adversarial": CleanThenAdversarialRecipe,
        "mixed": MixedRecipe,
        "stages": StagesRecipe,
    },
)
