"""Sparse coding under attack: what the feature purification paper proves, made computable.

x = M z + xi with a sparse hidden z, labels sign(<w*, z>), and two-layer symmetric ReLU networks.
"""

from .finite import dual_norm as dual_norm
from .finite import linear_accuracy as linear_accuracy
from .finite import pure_cosine as pure_cosine
from .finite import pure_shift as pure_shift
from .finite import shift_ratio as shift_ratio
from .finite import universal_shift as universal_shift
from .law import HiddenLaw as HiddenLaw
from .law import ScoreLaw as ScoreLaw
from .law import oracle_accuracy as oracle_accuracy
from .law import score_law as score_law
from .regime import Condition as Condition
from .regime import Regime as Regime
from .regime import Statement as Statement
from .regime import regime as regime
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
from .small_ball import small_ball_bound as small_ball_bound
from .small_ball import small_ball_floor_order as small_ball_floor_order
from .small_ball import small_ball_order as small_ball_order
