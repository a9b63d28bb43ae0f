"""The estimators keep scikit-learn's contract."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from advlab.core.errors import AdvlabError
from advlab.linear import (
    AdversarialClassifier,
    AdversarialClassifierCV,
    AdversarialRegressor,
    AdversarialRegressorCV,
    solve_linear,
)

QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@QUIET
@parametrize_with_checks([AdversarialRegressor(), AdversarialClassifier(multi_class="ovr")])
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@QUIET
@pytest.mark.nightly
@parametrize_with_checks(
    [
        AdversarialRegressor("l2", loss="huber"),
        AdversarialRegressor("l1", loss="absolute", scales="std"),
        AdversarialClassifier("l2", loss="hinge"),
        AdversarialClassifier("l2", loss="hinge", multi_class="ovr"),
        AdversarialRegressorCV(eps_grid=2, cv=2, attack_eps=0.1),
        AdversarialClassifierCV(eps_grid=2, cv=2, attack_eps=0.1),
    ]
)
def test_the_contract_in_more_settings(estimator, check):
    check(estimator)


def test_a_regressor_is_the_solver_in_a_pipeline():
    x, y = load_diabetes(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), AdversarialRegressor("linf", 0.05)).fit(x, y)
    model = pipe[-1]
    alone = solve_linear(StandardScaler().fit_transform(x), y, 0.05)
    np.testing.assert_allclose(model.coef_, alone.coef, rtol=1e-9)
    assert model.gap_ <= 1e-8
    assert model.status_.startswith("converged")
    assert 0.4 < cross_val_score(pipe, x, y, cv=3).mean() < 0.6
    assert pipe[-1].robust_loss(pipe[0].transform(x), y) == pytest.approx(model.objective_)


def test_default_radius_scales_and_radii_per_feature():
    x, y = load_diabetes(return_X_y=True)
    by_data = AdversarialRegressor(eps="default").fit(x, y)
    assert 0 < by_data.eps_ < 1
    assert by_data.coef_.any()
    scaled = AdversarialRegressor(eps=0.1, scales="std").fit(x, y)
    standard = AdversarialRegressor(eps=0.1).fit(x / x.std(0), y)
    np.testing.assert_allclose(scaled.coef_ * x.std(0), standard.coef_, rtol=1e-6, atol=1e-9)
    radii = np.r_[0.5, np.zeros(9)]
    one = AdversarialRegressor(eps=radii).fit(x, y)
    assert one.coef_[1:].all()


def test_robust_margins_are_those_of_the_worst_attack_found_by_search():
    x, y = load_iris(return_X_y=True)
    model = AdversarialClassifier("linf", 0.3, "hinge").fit(x, y)
    margins = model.robust_margins(x, y)
    rng = np.random.default_rng(0)
    moves = 0.3 * np.sign(rng.normal(size=(200, 4)))
    worst = np.full(len(y), np.inf)
    for move in moves:
        scores = model.decision_function(x + move)
        own = scores[np.arange(len(y)), y]
        scores[np.arange(len(y)), y] = -np.inf
        worst = np.minimum(worst, own - scores.max(axis=1))
    np.testing.assert_allclose(worst, margins, atol=1e-9)
    assert model.robust_score(x, y) == np.mean(margins > 0)
    hinge = np.maximum(1 - margins, 0).mean()
    assert model.objective_ == pytest.approx(hinge, rel=1e-9)
    assert model.gap_ <= 1e-8


def test_the_joint_problem_is_the_binary_one_for_two_classes():
    from advlab.linear._solvers.multiclass import solve_joint
    from advlab.linear.solve import prepare

    x, y = load_iris(return_X_y=True)
    x, y = x[50:], y[50:] - 1
    signs = np.where(y == 1, 1.0, -1.0)
    for loss in ("logistic", "hinge"):
        binary = solve_linear(x, signs, 0.2, loss=loss)
        ready = prepare(x, signs, loss=loss, merge=False)
        joint = solve_joint(ready.problem.at_radii(np.full(4, 0.2)), y, 2)
        assert joint.value == pytest.approx(binary.objective, rel=1e-7)


def test_robust_training_is_more_robust_and_cross_validation_chooses_it():
    x, y = load_breast_cancer(return_X_y=True)
    x = StandardScaler().fit_transform(x)[:, :10]
    plain = AdversarialClassifier(eps=0.0, l2=1e-4).fit(x[:300], y[:300])
    robust = AdversarialClassifier(eps=0.15).fit(x[:300], y[:300])
    assert robust.robust_score(x[300:], y[300:], 0.15) > plain.robust_score(x[300:], y[300:], 0.15)
    chosen = AdversarialClassifierCV(eps_grid=[0.001, 0.1], attack_eps=0.15, cv=3).fit(x, y)
    assert chosen.best_eps_ == 0.1
    assert chosen.scores_.shape == (2, 3)


def test_robust_cross_validation_of_regression():
    x, y = load_diabetes(return_X_y=True)
    x = StandardScaler().fit_transform(x)
    strong = AdversarialRegressorCV(eps_grid=5, attack_eps=0.5, cv=3).fit(x, y)
    weak = AdversarialRegressorCV(eps_grid=5, attack_eps=0.0, cv=3).fit(x, y)
    assert strong.best_eps_ > weak.best_eps_
    assert clone(strong).get_params()["attack_eps"] == 0.5


def test_bad_input():
    x, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="2 classes"):
        AdversarialClassifier().fit(x[:50], y[:50])
    with pytest.raises(AdvlabError, match="eps must not be negative"):
        AdversarialRegressor(eps=-1).fit(x, y)
    with pytest.raises(AdvlabError, match="one per feature, or 'default'"):
        AdversarialRegressor(eps="large").fit(x, y)
    with pytest.raises(ValueError, match="could not convert"):
        AdversarialRegressor().fit(np.array([["a", 1.0], ["b", 2.0]], dtype=object), [1.0, 2.0])
    with pytest.raises(AdvlabError, match="x must be numbers; got could not convert"):
        solve_linear(np.array([["a", 1.0], ["b", 2.0]], dtype=object), [1.0, 2.0], 0.1)
    with pytest.raises(AdvlabError, match="y must be of the classes"):
        AdversarialClassifier().fit(x[50:], y[50:]).robust_score(x, y)
    useless = AdversarialClassifier(eps=50.0).fit(x, y)
    assert not useless.coef_.any()
    assert useless.status_.startswith("zero")
    with pytest.raises(ValueError, match="NaN"):
        AdversarialRegressor().fit(np.where(x > 5, np.nan, x), y)
    with pytest.warns(ConvergenceWarning, match="no minimiser"):
        AdversarialClassifier(eps=0.0).fit(x[:100], y[:100])
    beyond = AdversarialRegressor(eps=100.0).fit(sparse.csr_array(x), y)
    assert not beyond.coef_.any()
    assert "eps_0" in beyond.status_
