"""Exact shortcuts for the training runs of the convergence paper."""

from .explicit_gradients import ExplicitAdversarial as ExplicitAdversarial
from .explicit_gradients import ExplicitLoss as ExplicitLoss
from .low_rank_deep import LowRankDeep as LowRankDeep
from .low_rank_deep import descend as descend
