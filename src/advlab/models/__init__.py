"""Networks: one architecture per file, and stacks of replicates of any of them."""

from .lazy import ACTIVATIONS as ACTIVATIONS
from .lazy import LazyNet as LazyNet
from .linear import Linear as Linear
from .normalised import Normalised as Normalised
from .stack import Stack as Stack
