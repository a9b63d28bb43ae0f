"""What the mixture's theory refuses."""

import numpy as np
import pytest
from mixture_parts import PRESET, gaussian

from advlab.core.errors import AdvlabError
from advlab.papers.benign import theory

NAN = float("nan")
BAD = {
    "negative mu": lambda: theory.robust_error_lower_bound(-1.0, 0.1, 0.1),
    "negative alpha": lambda: theory.robust_error_lower_bound(1.0, -0.1, 0.1),
    "beta of a half": lambda: theory.robust_error_lower_bound(1.0, 0.1, 0.5),
    "beta NaN": lambda: theory.robust_error_lower_bound(1.0, 0.1, NAN),
    "unknown form": lambda: theory.robust_error_lower_bound(1.0, 0.1, 0.1, "sharp"),
    "shapes": lambda: theory.robust_error_lower_bound([1.0, 2.0], [0.1, 0.2, 0.3], 0.1),
    "cos": lambda: theory.linear_rule_risk(1.1, 1.0, 0.1, 0.1),
    "words": lambda: theory.linear_rule_risk(["a"], 1.0, 0.1, 0.1),
    "overlap": lambda: theory.lower_bound_from_overlap(1.1, 0.1),
    "negative shift": lambda: theory.overlap(gaussian, -1.0),
    "peak elsewhere": lambda: theory.overlap(lambda t: gaussian(t - 5), 1.0),
    "no tails": lambda: theory.overlap(lambda t: 0.0 * t, 1.0),
    "one draw": lambda: theory.overlap_monte_carlo(gaussian, [[1.0, 2.0]], [1.0, 0.0], 0.1),
    "draws of another size": lambda: theory.overlap_monte_carlo(
        gaussian, np.ones((5, 3)), [1.0, 0.0], 0.1
    ),
    "C of zero": lambda: theory.robust_upper_bound(10, 10, 1.0, 0.1, 0.1, C=0.0),
    "n of zero": lambda: theory.clean_upper_bound(0, 10, 1.0, 0.1),
    "errors above one": lambda: theory.fit_C([1.2], 10, 10, 1.0, 0.1, 0.1),
    "no errors": lambda: theory.fit_C([], 10, 10, 1.0, 0.1, 0.1),
    "three classes": lambda: theory.certificate([1.0, 1.0, 1.0], 1.0, 0.1, 0.1),
    "zero network": lambda: theory.certificate([1.0, 1.0], 0.0, 0.1, 0.1),
    "zeta": lambda: theory.iterations_needed(0.1, 1.0, 0.1, 0.5, 4, 10, zeta=1.0),
    "gamma": lambda: theory.iterations_needed(0.1, 1.0, 0.1, 0.0, 4, 10),
    "c0 above one": lambda: theory.iterations_needed(0.1, 1.0, 0.1, 0.5, 4, 10, c0=1.5),
    "eps": lambda: theory.iterations_needed(0.0, 1.0, 0.1, 0.5, 4, 10),
    "level": lambda: theory.averaging_contour(1.0, 0.95, 100, 0.1),
    "delta": lambda: theory.check_assumptions(**PRESET | {"delta": 0.5}),
    "kappa": lambda: theory.C1(0.0),
    "ball over the origin": lambda: theory.loss_ratio_bound(10, 1.0, 1.0, 0.5),
    "negative steps": lambda: theory.norm_growth_bound(-1, 1.0, 0.1, 10, 10, 1.0, 0.5, 0.2),
    "H of zero": lambda: theory.slrelu_norm_growth_bound(1, 1.0, 0.1, 0.5, 4, 0.0),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call):
    with pytest.raises(AdvlabError):
        call()
