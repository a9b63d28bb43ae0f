"""Exact shortcuts for the training runs of the CGRO paper."""

from .patch_dynamics import PatchState as PatchState
from .patch_dynamics import trajectory as trajectory
from .patch_law import PatchProblem as PatchProblem
