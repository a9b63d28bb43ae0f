"""What the theory of tangent kernels refuses."""

import numpy as np
import pytest

from advlab.errors import AdvlabError
from advlab.theory import ntk

X, Y = np.eye(3), np.array([1.0, -1.0, 1.0])
G = ntk.Expansion(ntk.shape("sin_cos"), X, Y)
SQUARE = ntk.Expansion(ntk.shape("quadratic_relu"), X, Y)


def fit(**changes):
    given = {"activation": "sin_cos", "x": X, "y": Y, "delta": 0.1, "eps": 0.3} | changes
    return ntk.robust_interpolant(**given, rng=np.random.default_rng(0))


BAD = {
    "unknown name": lambda: ntk.kernel("swish", 0.5),
    "cosine above one": lambda: ntk.kernel("relu", 1.1),
    "cosine NaN": lambda: ntk.kernel("relu", np.nan),
    "words": lambda: ntk.kernel("relu", "a"),
    "no closed slope": lambda: ntk.kernel_slope("sigmoid", 0.5),
    "gamma of zero": lambda: ntk.SHAPES["leaky_relu"](0.0),
    "gamma above one": lambda: ntk.SHAPES["leaky_relu"](1.5),
    "H of zero": lambda: ntk.SHAPES["smoothed_leaky_relu"](0.1, 0.0),
    "off the sphere": lambda: ntk.gram("sin_cos", 2 * X),
    "other columns": lambda: ntk.gram("relu", X, np.eye(2)),
    "a vector": lambda: ntk.gram("relu", X[0]),
    "degree": lambda: ntk.hermite_coefficients("relu", -1),
    "series": lambda: ntk.kernel_by_hermite([[1.0]], 0.5),
    "zero slope": lambda: ntk.parity(lambda z: 0 * z),
    "few degrees": lambda: ntk.parity("relu", 3),
    "tolerance": lambda: ntk.parity("relu", tolerance=0.0),
    "ranks off the sphere": lambda: ntk.parity_ranks("relu", 2 * X),
    "lifted off the sphere": lambda: ntk.lifted(2 * X),
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
    "ridge of zero": lambda: ntk.ridge_interpolant(
        "relu", X, Y, 0.1, 0.0, rng=np.random.default_rng(0)
    ),
    "square gram": lambda: ntk.least_norm(np.ones((2, 3)), [1.0, 1.0], 0.1),
    "weights of another size": lambda: ntk.random_features(G, np.eye(2)),
    "unbounded slope": lambda: ntk.rf_norm_upper(SQUARE),
    "jump": lambda: ntk.total_bound(ntk.shape("relu"), 1.0, 4, 3),
    "form": lambda: ntk.feature_error_bound(1.0, 10, 3, 1.0, form="sharp"),
    "delta of zero": lambda: ntk.feature_error_bound(1.0, 10, 3, 1.0, delta=0.0),
    "no features": lambda: ntk.feature_error_bound(1.0, 0, 3, 1.0),
    "signs": lambda: ntk.robust_network(G, X, [1.0, 2.0, 1.0]),
    "too few signs": lambda: ntk.robust_network(G, X, [1.0]),
    "negative width": lambda: ntk.residual_bound(1.0, -2, 1.0),
    "L of zero": lambda: ntk.error_split(0.1, 0.0),
    "R of zero": lambda: ntk.corollary_5_1(0.0, 0.1),
    "eps of one": lambda: ntk.corollary_c_1(1.0, 3),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call):
    with pytest.raises(AdvlabError):
        call()


@pytest.mark.parametrize("name", ["sigmoid", "smoothed_leaky_relu"])
def test_a_name_without_closed_form_is_sent_to_the_quadrature(name):
    with pytest.raises(AdvlabError, match="kernel_by_quadrature"):
        ntk.kernel(name, 0.5)
