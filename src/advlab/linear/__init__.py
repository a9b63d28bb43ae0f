"""Linear models under attack, exactly: risks and optima in population, solvers on samples.

Data are y = theta0'x + u with x ~ N(0, cov) and u ~ N(0, sigma2); cov = None means the identity.
An attack moves x inside an l2, linf or l1 ball. The closed forms are those of Xing, Song and Cheng
(AISTATS 2021), unless a docstring says "derived here".

Example:
    from advlab import linear
    from advlab.threats import Ball

    ball = Ball(norm="l2", radius=0.5)
    best = linear.optimal([1.0] * 10, 1.0, ball)  # best.theta, best.risk = 5.385, best.kappa
    linear.adversarial_risk([1.0] * 10, [1.0] * 10, 1.0, ball)  # 6.02, the risk of theta0 itself

On samples: `solve_linear` and `adversarial_path` (numpy alone), and with the extra `linear` the
scikit-learn estimators `AdversarialRegressor`, `AdversarialClassifier` and their `...CV`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.errors import AdvlabError
from .adversarial_path import AdversarialPath as AdversarialPath
from .adversarial_path import adversarial_path as adversarial_path
from .data_risks import population_risk as population_risk
from .data_risks import robust_losses as robust_losses
from .default_radius import default_eps as default_eps
from .inputs import C0 as C0
from .interpolation import MinNorm as MinNorm
from .interpolation import gd_closed_form as gd_closed_form
from .interpolation import interpolator_training_risk as interpolator_training_risk
from .interpolation import min_norm as min_norm
from .interpolation import minnorm_expectations as minnorm_expectations
from .min_norm_l1 import min_norm_l1 as min_norm_l1
from .minimiser import Optimum as Optimum
from .minimiser import cost_of_robustness as cost_of_robustness
from .minimiser import eps_unmoved as eps_unmoved
from .minimiser import eps_zero as eps_zero
from .minimiser import optimal as optimal
from .minimiser import optimal_path as optimal_path
from .minimiser import quadratic_growth as quadratic_growth
from .risks import adversarial_risk as adversarial_risk
from .risks import adversarial_risks as adversarial_risks
from .risks import residual_std as residual_std
from .risks import standard_risk as standard_risk
from .risks import total_variance as total_variance
from .samples import Minimum as Minimum
from .samples import empirical_minimiser as empirical_minimiser
from .samples import empirical_risk as empirical_risk
from .samples import smoothed_risk as smoothed_risk
from .samples import soft_threshold as soft_threshold
from .solve import LinearSolution as LinearSolution
from .solve import Thresholds as Thresholds
from .solve import solve_linear as solve_linear
from .solve import thresholds as thresholds

if TYPE_CHECKING:
    from .estimators import AdversarialClassifier as AdversarialClassifier
    from .estimators import AdversarialRegressor as AdversarialRegressor
    from .estimators_cv import AdversarialClassifierCV as AdversarialClassifierCV
    from .estimators_cv import AdversarialRegressorCV as AdversarialRegressorCV

_ESTIMATORS = {
    "AdversarialClassifier": "estimators",
    "AdversarialRegressor": "estimators",
    "AdversarialClassifierCV": "estimators_cv",
    "AdversarialRegressorCV": "estimators_cv",
}


def __getattr__(name: str) -> Any:
    """scikit-learn is imported when an estimator is first named."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_ESTIMATORS[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "sklearn":
            raise
        raise AdvlabError(
            f"{name} needs scikit-learn", advice='pip install "advlab[linear]"'
        ) from None
