"""The data models of the generalization paper."""

from .regression import AR1 as AR1
from .regression import LinearModel as LinearModel
from .regression import Regression as Regression
from .regression import SparseVector as SparseVector
from .regression import symmetrise as symmetrise
