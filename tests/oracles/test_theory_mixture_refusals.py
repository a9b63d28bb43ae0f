"""What the mixture's theory refuses."""

import numpy as np
import pytest
from mixture_parts import PRESET, gaussian

from advlab.errors import AdvlabError
from advlab.theory import mixture

NAN = float("nan")
BAD = {
    "negative mu": lambda: mixture.robust_error_lower_bound(-1.0, 0.1, 0.1),
    "negative alpha": lambda: mixture.robust_error_lower_bound(1.0, -0.1, 0.1),
    "beta of a half": lambda: mixture.robust_error_lower_bound(1.0, 0.1, 0.5),
    "beta NaN": lambda: mixture.robust_error_lower_bound(1.0, 0.1, NAN),
    "unknown form": lambda: mixture.robust_error_lower_bound(1.0, 0.1, 0.1, "sharp"),
    "shapes": lambda: mixture.robust_error_lower_bound([1.0, 2.0], [0.1, 0.2, 0.3], 0.1),
    "cos": lambda: mixture.linear_rule_risk(1.1, 1.0, 0.1, 0.1),
    "words": lambda: mixture.linear_rule_risk(["a"], 1.0, 0.1, 0.1),
    "overlap": lambda: mixture.lower_bound_from_overlap(1.1, 0.1),
    "negative shift": lambda: mixture.overlap(gaussian, -1.0),
    "peak elsewhere": lambda: mixture.overlap(lambda t: gaussian(t - 5), 1.0),
    "no tails": lambda: mixture.overlap(lambda t: 0.0 * t, 1.0),
    "one draw": lambda: mixture.overlap_monte_carlo(gaussian, [[1.0, 2.0]], [1.0, 0.0], 0.1),
    "draws of another size": lambda: mixture.overlap_monte_carlo(
        gaussian, np.ones((5, 3)), [1.0, 0.0], 0.1
    ),
    "C of zero": lambda: mixture.robust_upper_bound(10, 10, 1.0, 0.1, 0.1, C=0.0),
    "n of zero": lambda: mixture.clean_upper_bound(0, 10, 1.0, 0.1),
    "errors above one": lambda: mixture.fit_C([1.2], 10, 10, 1.0, 0.1, 0.1),
    "no errors": lambda: mixture.fit_C([], 10, 10, 1.0, 0.1, 0.1),
    "three classes": lambda: mixture.certificate([1.0, 1.0, 1.0], 1.0, 0.1, 0.1),
    "zero network": lambda: mixture.certificate([1.0, 1.0], 0.0, 0.1, 0.1),
    "zeta": lambda: mixture.iterations_needed(0.1, 1.0, 0.1, 0.5, 4, 10, zeta=1.0),
    "gamma": lambda: mixture.iterations_needed(0.1, 1.0, 0.1, 0.0, 4, 10),
    "c0 above one": lambda: mixture.iterations_needed(0.1, 1.0, 0.1, 0.5, 4, 10, c0=1.5),
    "eps": lambda: mixture.iterations_needed(0.0, 1.0, 0.1, 0.5, 4, 10),
    "level": lambda: mixture.averaging_contour(1.0, 0.95, 100, 0.1),
    "delta": lambda: mixture.check_assumptions(**PRESET | {"delta": 0.5}),
    "kappa": lambda: mixture.C1(0.0),
    "ball over the origin": lambda: mixture.loss_ratio_bound(10, 1.0, 1.0, 0.5),
    "negative steps": lambda: mixture.norm_growth_bound(-1, 1.0, 0.1, 10, 10, 1.0, 0.5, 0.2),
    "H of zero": lambda: mixture.slrelu_norm_growth_bound(1, 1.0, 0.1, 0.5, 4, 0.0),
    "c below one": lambda: mixture.anti_concentration(0.9),
    "delta of one": lambda: mixture.projection_bound(1.0, 1.0),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call):
    with pytest.raises(AdvlabError):
        call()
