"""Sparse coding under attack: what the feature purification paper proves, made computable.

x = M z + xi with a sparse hidden z, labels sign(<w*, z>), and two-layer symmetric ReLU networks.
"""

from .regime import Condition as Condition
from .regime import Regime as Regime
from .regime import Statement as Statement
from .regime import regime as regime
from .run_conditions import run_conditions as run_conditions
from .schedules import Clamped as Clamped
from .schedules import bias as bias
from .schedules import bias_end as bias_end
from .schedules import bias_start as bias_start
from .schedules import noise_scale as noise_scale
from .schedules import regularisation as regularisation
from .schedules import weight_scale as weight_scale
from .series import density_coefficients as density_coefficients
from .series import density_series as density_series
from .series import relu_series as relu_series
from .series import step_coefficients as step_coefficients
from .series import step_series as step_series
