"""Exact shortcuts: the same run in fewer numbers."""

from .linear import LinearAdversarial as LinearAdversarial
from .subspace import Subspace as Subspace
