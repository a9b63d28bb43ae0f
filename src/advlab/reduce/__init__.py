"""Exact shortcuts: the same run in fewer numbers."""

from .explicit import ExplicitAdversarial as ExplicitAdversarial
from .explicit import ExplicitLoss as ExplicitLoss
from .lazy import LazyAdversarial as LazyAdversarial
from .lazy import single_neuron as single_neuron
from .linear import LinearAdversarial as LinearAdversarial
from .patch_dynamics import PatchState as PatchState
from .patch_dynamics import trajectory as trajectory
from .patch_law import PatchProblem as PatchProblem
from .subspace import Subspace as Subspace
from .symmetric import SymmetricAdversarial as SymmetricAdversarial
from .symmetric import SymmetricLoss as SymmetricLoss
from .two_layer import TwoLayerAdversarial as TwoLayerAdversarial
from .two_layer import attacked as attacked
