"""Tangent kernels of two-layer networks, and robust networks near initialisation.

What section 5 and appendix C of the convergence paper prove, with its slips put right: the kernels
and which functions they hold, the least-norm function that fits whole caps, its random features and
the explicit network that they make.
"""

from .activations import ACTIVATIONS as ACTIVATIONS
from .activations import KernelActivation as KernelActivation
from .activations import get_activation as get_activation
from .assumptions import compatible_caps as compatible_caps
from .assumptions import deep_extremes as deep_extremes
from .assumptions import deep_theorem as deep_theorem
from .assumptions import on_unit_sphere as on_unit_sphere
from .assumptions import two_layer_theorem as two_layer_theorem
from .caps import OverlappingCaps as OverlappingCaps
from .caps import overlapping_caps as overlapping_caps
from .features import RandomFeatures as RandomFeatures
from .features import feature_error_bound as feature_error_bound
from .features import feature_spread as feature_spread
from .features import random_features as random_features
from .features import rf_norm_lower as rf_norm_lower
from .features import rf_norm_upper as rf_norm_upper
from .features import slope_bound as slope_bound
from .interpolant import Expansion as Expansion
from .interpolant import RobustFit as RobustFit
from .interpolant import ridge_interpolant as ridge_interpolant
from .interpolant import robust_interpolant as robust_interpolant
from .kernels import closed_forms as closed_forms
from .kernels import gram as gram
from .kernels import kernel as kernel
from .kernels import kernel_slope as kernel_slope
from .linearised_optimum import LinearisedOptimum as LinearisedOptimum
from .linearised_optimum import linearised_optimum as linearised_optimum
from .parity import Parity as Parity
from .parity import Ranks as Ranks
from .parity import lifted as lifted
from .parity import parity as parity
from .parity import parity_ranks as parity_ranks
from .quadratic_program import LeastNorm as LeastNorm
from .quadratic_program import least_norm as least_norm
from .quadrature import hermite_coefficients as hermite_coefficients
from .quadrature import kernel_by_hermite as kernel_by_hermite
from .quadrature import kernel_by_quadrature as kernel_by_quadrature
from .quadrature import with_series as with_series
from .robust_network import ErrorSplit as ErrorSplit
from .robust_network import NetworkNearInit as NetworkNearInit
from .robust_network import Requirement as Requirement
from .robust_network import corollary_5_1 as corollary_5_1
from .robust_network import corollary_c_1 as corollary_c_1
from .robust_network import error_split as error_split
from .robust_network import residual_bound as residual_bound
from .robust_network import robust_network as robust_network
from .robust_network import sufficient_width as sufficient_width
from .robust_network import total_bound as total_bound
