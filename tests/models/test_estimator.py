"""Estimators of scikit-learn as black boxes: their scores mean what they predict."""

import numpy as np
import pytest
import torch

import advlab
from advlab.attacks import FAB, PGD, Square
from advlab.core.errors import AdvlabError
from advlab.models import Estimator
from advlab.threats import Ball

pytest.importorskip("sklearn")
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

X = np.random.default_rng(0).random((60, 4))
TWO = (X[:, 0] > X[:, 1]).astype(int)
THREE = np.array(["a", "b", "c"])[np.argsort(np.argsort(X[:, 0] + 0.3 * X[:, 2])) // 20]
BALL = Ball("linf", 0.1)

CLASSIFIERS = [
    (LogisticRegression(), TWO, "decision_function"),
    (LogisticRegression(), 2 * TWO - 1, "decision_function"),
    (LogisticRegression(), THREE, "decision_function"),
    (make_pipeline(StandardScaler(), LinearSVC()), TWO + 5, "decision_function"),
    (SVC(decision_function_shape="ovo"), THREE, "predict"),
    (KNeighborsClassifier(), THREE, "predict_proba"),
    (DecisionTreeClassifier(max_depth=3), TWO, "predict_proba"),
]


@pytest.mark.parametrize(("estimator", "y", "method"), CLASSIFIERS)
def test_a_classifier_is_judged_by_what_it_predicts(estimator, y, method):
    estimator.fit(X, y)
    model = Estimator(estimator, torch.from_numpy(X))
    assert model.method == method
    found = advlab.evaluate(
        estimator, X, y, BALL, Square(queries=30), certificates=(), checks=False, points=True
    )
    assert found.clean_error == pytest.approx(np.mean(estimator.predict(X) != y), abs=0.034)
    moved = found.adversarial
    wrong = estimator.predict(moved.x.numpy()) != y
    # Scores that tie are errors here, and an answer there.
    assert (moved.broken.numpy() | ~wrong).all()
    assert np.mean(moved.broken.numpy() != wrong) <= 0.1
    assert found.robust_error > found.clean_error
    assert type(estimator).__name__ in found.reading


def test_votes_that_differ_from_scores_give_labels():
    """Of SVC the largest score by one against the rest need not be the class it votes for."""
    rng = np.random.default_rng(1)
    x, y = rng.random((80, 2)), rng.integers(0, 4, 80)
    estimator = SVC(C=50, gamma=30).fit(x, y)
    scores = estimator.decision_function(x).argmax(1)
    model = Estimator(estimator, torch.from_numpy(x))
    differ = bool((estimator.classes_[scores] != estimator.predict(x)).any())
    assert (model.method == "predict") == differ
    answers = model(torch.from_numpy(x)).argmax(1).numpy()
    assert (estimator.classes_[answers] == estimator.predict(x)).all()


def test_regressors_clusters_and_outliers():
    tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    found = advlab.evaluate(tree, X, X[:, 0], BALL, "fast")
    assert found.clean_loss == pytest.approx(np.mean((tree.predict(X) - X[:, 0]) ** 2))
    assert found.robust_loss > found.clean_loss
    ridge = Ridge().fit(X, X[:, 0])
    weights, residual = np.abs(ridge.coef_).sum(), np.abs(ridge.predict(X) - X[:, 0])
    exact = np.mean((residual + 0.1 * weights) ** 2)
    found = advlab.evaluate(ridge, X, X[:, 0], BALL, Square(queries=300))
    assert exact * 0.9 < found.robust_loss <= exact * (1 + 1e-9)
    for estimator in (
        KMeans(3, n_init=1, random_state=0),
        IsolationForest(n_estimators=20, random_state=0),
    ):
        y = estimator.fit(X).predict(X)
        assert advlab.evaluate(estimator, X, y, BALL, PGD(steps=1), checks=False).clean_error == 0


def test_what_is_no_fitted_estimator_of_rows_is_refused():
    with pytest.raises(AdvlabError, match=r"an estimator, fitted.*not fitted yet"):
        advlab.evaluate(LogisticRegression(), X, TWO, BALL)
    with pytest.raises(AdvlabError, match="takes rows of 2 numbers"):
        advlab.evaluate(LogisticRegression().fit(X, TWO), X[:, :2], TWO, BALL)
    two = DecisionTreeClassifier().fit(X, np.stack([TWO, TWO], 1))
    with pytest.raises(AdvlabError, match="one answer per row"):
        advlab.evaluate(two, X, TWO, BALL)


@pytest.mark.parametrize("method", [None, "predict_proba", "predict"])
def test_attacks_that_run_out_of_rows_do_not_ask_about_none(method):
    """FAB drops rows; a tree cannot be asked about an empty batch."""
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, TWO)
    model = tree if method is None else getattr(tree, method)
    found = advlab.evaluate(model, X, TWO, BALL, FAB(steps=2), checks=False)
    assert found.clean_error == pytest.approx(np.mean(tree.predict(X) != TWO), abs=0.05)


def test_no_rows_and_images():
    model = Estimator(LogisticRegression().fit(X, THREE), torch.from_numpy(X))
    assert model(torch.zeros(0, 2, 2)).shape == (0, 3)
    assert model(torch.zeros(5, 2, 2)).shape == (5, 3)
