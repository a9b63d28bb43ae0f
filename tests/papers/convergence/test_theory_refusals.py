"""What the theory of tangent kernels refuses."""

import numpy as np
import pytest

from advlab.core.errors import AdvlabError
from advlab.papers.convergence import theory

X, Y = np.eye(3), np.array([1.0, -1.0, 1.0])
G = theory.Expansion(theory.get_activation("sin_cos"), X, Y)
SQUARE = theory.Expansion(theory.get_activation("quadratic_relu"), X, Y)


def fit(**changes):
    given = {"activation": "sin_cos", "x": X, "y": Y, "delta": 0.1, "eps": 0.3} | changes
    return theory.robust_interpolant(**given, rng=np.random.default_rng(0))


BAD = {
    "unknown name": lambda: theory.kernel("swish", 0.5),
    "cosine above one": lambda: theory.kernel("relu", 1.1),
    "cosine NaN": lambda: theory.kernel("relu", np.nan),
    "words": lambda: theory.kernel("relu", "a"),
    "no closed slope": lambda: theory.kernel_slope("sigmoid", 0.5),
    "gamma of zero": lambda: theory.ACTIVATIONS["leaky_relu"](0.0),
    "gamma above one": lambda: theory.ACTIVATIONS["leaky_relu"](1.5),
    "H of zero": lambda: theory.ACTIVATIONS["smoothed_leaky_relu"](0.1, 0.0),
    "off the sphere": lambda: theory.gram("sin_cos", 2 * X),
    "other columns": lambda: theory.gram("relu", X, np.eye(2)),
    "a vector": lambda: theory.gram("relu", X[0]),
    "degree": lambda: theory.hermite_coefficients("relu", -1),
    "series": lambda: theory.kernel_by_hermite([[1.0]], 0.5),
    "zero slope": lambda: theory.parity(lambda z: 0 * z),
    "few degrees": lambda: theory.parity("relu", 3),
    "tolerance": lambda: theory.parity("relu", tolerance=0.0),
    "ranks off the sphere": lambda: theory.parity_ranks("relu", 2 * X),
    "lifted off the sphere": lambda: theory.lifted(2 * X),
    "labels": lambda: fit(y=[1.0, 0.0, 1.0]),
    "too few labels": lambda: fit(y=[1.0, -1.0]),
    "points off the sphere": lambda: fit(x=2 * X),
    "points NaN": lambda: fit(x=np.nan * X),
    "negative delta": lambda: fit(delta=-0.1),
    "delta of two": lambda: fit(delta=2.0, y=[1.0, 1.0, 1.0]),
    "eps of zero": lambda: fit(eps=0.0),
    "no rounds": lambda: fit(rounds=0),
    "caps that meet": lambda: fit(delta=0.9),
    "no closed form": lambda: fit(activation="sigmoid"),
    "ridge of zero": lambda: theory.ridge_interpolant(
        "relu", X, Y, 0.1, 0.0, rng=np.random.default_rng(0)
    ),
    "square gram": lambda: theory.least_norm(np.ones((2, 3)), [1.0, 1.0], 0.1),
    "weights of another size": lambda: theory.random_features(G, np.eye(2)),
    "unbounded slope": lambda: theory.rf_norm_upper(SQUARE),
    "jump": lambda: theory.total_bound(theory.get_activation("relu"), 1.0, 4, 3),
    "form": lambda: theory.feature_error_bound(1.0, 10, 3, 1.0, form="sharp"),
    "delta of zero": lambda: theory.feature_error_bound(1.0, 10, 3, 1.0, delta=0.0),
    "no features": lambda: theory.feature_error_bound(1.0, 0, 3, 1.0),
    "signs": lambda: theory.robust_network(G, X, [1.0, 2.0, 1.0]),
    "too few signs": lambda: theory.robust_network(G, X, [1.0]),
    "negative width": lambda: theory.residual_bound(1.0, -2, 1.0),
    "L of zero": lambda: theory.error_split(0.1, 0.0),
    "R of zero": lambda: theory.corollary_5_1(0.0, 0.1),
    "eps of one": lambda: theory.corollary_c_1(1.0, 3),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call):
    with pytest.raises(AdvlabError):
        call()


@pytest.mark.parametrize("name", ["sigmoid", "smoothed_leaky_relu"])
def test_a_name_without_closed_form_is_sent_to_the_quadrature(name):
    with pytest.raises(AdvlabError, match="kernel_by_quadrature"):
        theory.kernel(name, 0.5)
