"""Exact shortcuts for the training runs of the generalization paper."""

from .lazy_training import LazyAdversarial as LazyAdversarial
from .lazy_training import single_neuron as single_neuron
from .linear_training import LinearAdversarial as LinearAdversarial
from .subspace import Subspace as Subspace
