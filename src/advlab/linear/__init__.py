"""Linear regression under attack: the closed forms of the generalization paper.

Data are y = theta0'x + u, x ~ N(0, cov), u ~ N(0, sigma2); cov = None means the identity.
"""

from .inputs import C0 as C0
from .interpolation import InterpolationRegime as InterpolationRegime
from .interpolation import MinNorm as MinNorm
from .interpolation import gd_closed_form as gd_closed_form
from .interpolation import interpolation_regime as interpolation_regime
from .interpolation import interpolator_training_risk as interpolator_training_risk
from .interpolation import min_norm as min_norm
from .interpolation import minnorm_expectations as minnorm_expectations
from .interpolation import spectrum_edges as spectrum_edges
from .interpolation import stopping_level as stopping_level
from .minimiser import Optimum as Optimum
from .minimiser import cost_of_robustness as cost_of_robustness
from .minimiser import eps_unmoved as eps_unmoved
from .minimiser import eps_zero as eps_zero
from .minimiser import optimal as optimal
from .minimiser import optimal_path as optimal_path
from .minimiser import quadratic_growth as quadratic_growth
from .risks import adversarial_risk as adversarial_risk
from .risks import adversarial_risks as adversarial_risks
from .risks import spread as spread
from .risks import standard_risk as standard_risk
from .risks import total_variance as total_variance
from .samples import Cone as Cone
from .samples import adversarial_lasso as adversarial_lasso
from .samples import cone as cone
from .samples import empirical_minimiser as empirical_minimiser
from .samples import empirical_potential as empirical_potential
from .samples import empirical_risk as empirical_risk
from .samples import loss_increase_bound as loss_increase_bound
from .samples import soft as soft
