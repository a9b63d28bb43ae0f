"""What only the convergence paper measures."""

from .compatibility import Compatibility as Compatibility
from .compatibility import compatibility as compatibility
