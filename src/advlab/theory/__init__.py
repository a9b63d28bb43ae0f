"""What is proved, computable without training: numpy and scipy in float64, never torch."""

from . import relu_calculus as relu_calculus
from .separation import Separation as Separation
from .separation import require_separated as require_separated
from .separation import separation as separation
