"""What the generalization paper proves about Algorithm 1, computable without training.

The closed forms of the linear model itself (risks, minimiser, interpolator) are in `advlab.linear`.
"""

from .adversarial_lasso import adversarial_lasso as adversarial_lasso
from .adversarial_lasso import empirical_potential as empirical_potential
from .algorithm_limit import Limit as Limit
from .algorithm_limit import algorithm_limit as algorithm_limit
from .algorithm_limit import kappa_alg as kappa_alg
from .algorithm_limit import stable_eta as stable_eta
from .interpolation_regime import InterpolationRegime as InterpolationRegime
from .interpolation_regime import interpolation_regime as interpolation_regime
from .interpolation_regime import spectrum_edges as spectrum_edges
from .interpolation_regime import stopping_level as stopping_level
from .interpolation_regime import wide_growth as wide_growth
from .lasso_cone import Cone as Cone
from .lasso_cone import cone as cone
from .lasso_cone import curvature_shortfall as curvature_shortfall
from .lasso_cone import curvatures as curvatures
from .lasso_cone import loss_increase as loss_increase
from .lasso_cone import loss_increase_bound as loss_increase_bound
from .lasso_cone import mean_squares as mean_squares
from .proportional_limit import ProportionalLimit as ProportionalLimit
from .proportional_limit import correlated_limit as correlated_limit
from .proportional_limit import min_norm_limit as min_norm_limit
from .proportional_limit import proportional_limit as proportional_limit
from .schedules import TheoremSchedule as TheoremSchedule
from .schedules import lasso_lambda as lasso_lambda
from .schedules import lazy_width as lazy_width
from .schedules import linear_eta as linear_eta
from .schedules import theorem2_schedule as theorem2_schedule
from .schedules import theorem3_schedule as theorem3_schedule
from .schedules import theorem4_schedule as theorem4_schedule
from .smoothness import potential_smoothness as potential_smoothness
from .surrogate import frozen_gradient as frozen_gradient
from .surrogate import gradient_gap as gradient_gap
from .surrogate import j1 as j1
from .surrogate import j2 as j2
from .surrogate import potential as potential
from .surrogate import potential_gradient as potential_gradient
from .surrogate import surrogate_risk as surrogate_risk
from .surrogate import xi_eff as xi_eff
from .surrogate_lasso import StationaryPoint as StationaryPoint
from .surrogate_lasso import surrogate_lasso as surrogate_lasso
from .surrogate_lasso import surrogate_loss as surrogate_loss
