"""What the generalization paper proves about Algorithm 1, computable without training."""

from .algorithm_limit import Limit as Limit
from .algorithm_limit import algorithm_limit as algorithm_limit
from .algorithm_limit import kappa_alg as kappa_alg
from .algorithm_limit import stable_eta as stable_eta
from .schedules import Schedule as Schedule
from .schedules import lasso_lambda as lasso_lambda
from .schedules import linear_eta as linear_eta
from .schedules import thm2_schedule as thm2_schedule
from .schedules import thm3_schedule as thm3_schedule
from .schedules import thm4_schedule as thm4_schedule
from .surrogate import frozen_gradient as frozen_gradient
from .surrogate import gradient_gap as gradient_gap
from .surrogate import j1 as j1
from .surrogate import j2 as j2
from .surrogate import potential as potential
from .surrogate import potential_gradient as potential_gradient
from .surrogate import surrogate_risk as surrogate_risk
from .surrogate import xi_eff as xi_eff
