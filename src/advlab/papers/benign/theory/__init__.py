"""The noisy two-cluster mixture under attack: what the benign overfitting paper proves.

x = y_c mu + xi with y_c = +-1, a share beta of flipped labels, and attacks in l2 balls of radius
alpha. The functions share the names of their arguments: n examples in d dimensions, mu_norm =
||mu||, alpha, beta; lam and kappa of the cluster law (strong log-concavity, E||xi||^2 >= kappa d);
width m, gamma of the activation, step size eta, and omega, the standard deviation of the start.

Example:
    from advlab.papers.benign.theory import linear_rule_risk, robust_error_lower_bound
    robust_error_lower_bound(5.0, 0.5, 0.1)  # no classifier has a smaller robust error
    linear_rule_risk(1.0, 5.0, 0.5, 0.1)  # the best linear rule's
"""

from .assumptions import Assumptions as Assumptions
from .assumptions import Inside as Inside
from .assumptions import check_assumptions as check_assumptions
from .assumptions import smallest_inside as smallest_inside
from .averaging_classifier import AveragingAccuracy as AveragingAccuracy
from .averaging_classifier import averaging_accuracy as averaging_accuracy
from .averaging_classifier import averaging_contour as averaging_contour
from .constants import C1 as C1
from .constants import C2 as C2
from .constants import Bounds as Bounds
from .constants import C_r as C_r
from .constants import c7 as c7
from .constants import first_step_floor as first_step_floor
from .constants import gradient_alignment as gradient_alignment
from .constants import loss_ratio_bound as loss_ratio_bound
from .constants import margin_growth as margin_growth
from .constants import norm_growth_bound as norm_growth_bound
from .constants import normalised_margin_floor as normalised_margin_floor
from .constants import slrelu_norm_growth_bound as slrelu_norm_growth_bound
from .constants import span_distance_bound as span_distance_bound
from .constants import squared_norm_rate as squared_norm_rate
from .lower_bound import Overlap as Overlap
from .lower_bound import linear_rule_risk as linear_rule_risk
from .lower_bound import lower_bound_from_overlap as lower_bound_from_overlap
from .lower_bound import overlap as overlap
from .lower_bound import overlap_monte_carlo as overlap_monte_carlo
from .lower_bound import robust_error_lower_bound as robust_error_lower_bound
from .lower_bound import robust_error_lower_bound_of_law as robust_error_lower_bound_of_law
from .upper_bound import SampleSizes as SampleSizes
from .upper_bound import certificate as certificate
from .upper_bound import clean_upper_bound as clean_upper_bound
from .upper_bound import fit_C as fit_C
from .upper_bound import iterations_needed as iterations_needed
from .upper_bound import robust_upper_bound as robust_upper_bound
from .upper_bound import sample_sizes as sample_sizes
from .upper_bound import slrelu_loss_bound as slrelu_loss_bound
from .upper_bound import training_loss_bound as training_loss_bound
