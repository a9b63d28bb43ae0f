"""The radius by robust cross-validation; needs the extra `linear`."""

# scikit-learn has no types, and parameters are attributes of the classes that inherit from these.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportOptionalSubscript=false, reportGeneralTypeIssues=false

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..core.checks import nonnegative
from ..core.errors import AdvlabError
from .estimators import AdversarialClassifier, AdversarialRegressor, _LinearEstimator
from .solve import thresholds


class _ChoosesRadius(_LinearEstimator):
    """Fits for each radius of a grid on each fold, and judges all under the same attack."""

    def _grid(self, X: Any, y: Any, weights: Any) -> np.ndarray:
        if not isinstance(self.eps_grid, int):
            grid = np.atleast_1d(nonnegative("eps_grid", self.eps_grid))
            if grid.ndim != 1 or not len(grid):
                raise AdvlabError("eps_grid must be a number of points or radii", grid.shape)
            return grid
        edge = self._edge(X, y, weights)
        return np.geomspace(edge, edge / 100, self.eps_grid)

    def _choose(self, X: Any, y: Any, weights: Any) -> None:
        base = self._base()
        first = clone(base).set_params(eps="default")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.attack_eps_ = (
                first.fit(X, y, weights).eps_ if self.attack_eps == "default" else self.attack_eps
            )
        self.eps_grid_ = self._grid(X, y, weights)
        folds = list(check_cv(self.cv, y, classifier=is_classifier(self)).split(X, y))
        self.scores_ = np.zeros((len(self.eps_grid_), len(folds)))
        # Folds may be separable at small radii; the fit on all data says so, once.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for k, (train, test) in enumerate(folds):
                for i, eps in enumerate(self.eps_grid_):
                    model = clone(base).set_params(eps=float(eps))
                    model.fit(X[train], y[train], weights[train])
                    self.scores_[i, k] = self._judge(model, X[test], y[test], weights[test])
        mean = self.scores_.mean(axis=1)
        # Of equal scores the largest radius: the simplest model.
        best = np.flatnonzero(mean >= mean.max() - 1e-12)
        self.best_eps_ = float(self.eps_grid_[best].max())

    def _base(self) -> Any:
        names = self._kind._get_param_names()
        return self._kind(**{name: getattr(self, name) for name in names if name != "eps"})

    def _finish(self, X: Any, y: Any, weights: Any):
        final = self._base().set_params(eps=self.best_eps_).fit(X, y, weights)
        for name, value in vars(final).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        return self


class AdversarialRegressorCV(_ChoosesRadius, AdversarialRegressor):
    """`AdversarialRegressor` with the radius of least attacked loss on held-out folds.

    All candidates are judged under one attack, `attack_eps`; judging each under its own would
    always choose 0.

    Args:
        eps_grid: radii, or how many between eps_0 and a hundredth of it.
        attack_eps: the radius that held-out samples are attacked with, or "default": the
            data-driven one.
        cv: folds, as in scikit-learn.
        norm, loss, delta, l1, l2, fit_intercept, scales, tol, max_iter, random_state: as in
            `AdversarialRegressor`.

    Fitted, besides: `best_eps_`, `eps_grid_`, `scores_` (radii, folds), `attack_eps_`.

    Example:
        from advlab.linear import AdversarialRegressorCV
        AdversarialRegressorCV(norm="linf", attack_eps=0.1).fit(X, y).best_eps_
    """

    _kind = AdversarialRegressor

    def __init__(
        self, norm="linf", eps_grid=15, loss="squared", *, attack_eps="default", cv=5, delta=1.35,
        l1=0.0, l2=0.0, fit_intercept=True, scales=None, tol=1e-8, max_iter=80, random_state=0,
    ):  # fmt: skip
        self.norm = norm
        self.eps_grid = eps_grid
        self.loss = loss
        self.attack_eps = attack_eps
        self.cv = cv
        self.delta = delta
        self.l1 = l1
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.scales = scales
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _edge(self, X: Any, y: Any, weights: Any) -> float:
        settings = self._settings(X, weights)
        edge = thresholds(X, y, **settings).zero
        return edge if np.isfinite(edge) and edge > 0 else 1.0

    def _judge(self, model: Any, X: Any, y: Any, weights: Any) -> float:
        used = weights if weights.sum() > 0 else None
        return -model.robust_loss(X, y, self.attack_eps_, used)

    def fit(self, X, y, sample_weight=None):
        """Choose the radius, then fit on all samples; returns self."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self._choose(X, np.asarray(y, dtype=np.float64), weights)
        return self._finish(X, y, weights)


class AdversarialClassifierCV(_ChoosesRadius, AdversarialClassifier):
    """`AdversarialClassifier` with the radius of the best robust accuracy on held-out folds.

    Args:
        eps_grid, attack_eps, cv: as in `AdversarialRegressorCV`.
        norm, loss, multi_class, l1, l2, fit_intercept, scales, tol, max_iter, random_state: as in
            `AdversarialClassifier`.

    Fitted, besides: `best_eps_`, `eps_grid_`, `scores_` (radii, folds), `attack_eps_`.

    Example:
        from advlab.linear import AdversarialClassifierCV
        AdversarialClassifierCV(norm="linf", attack_eps=0.1).fit(X, y).best_eps_
    """

    _kind = AdversarialClassifier

    def __init__(
        self, norm="linf", eps_grid=15, loss="logistic", *, attack_eps="default", cv=5,
        multi_class="joint", l1=0.0, l2=0.0, fit_intercept=True, scales=None, tol=1e-8, max_iter=80,
        random_state=0,
    ):  # fmt: skip
        self.norm = norm
        self.eps_grid = eps_grid
        self.loss = loss
        self.attack_eps = attack_eps
        self.cv = cv
        self.multi_class = multi_class
        self.l1 = l1
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.scales = scales
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _edge(self, X: Any, y: Any, weights: Any) -> float:
        settings = self._settings(X, weights)
        edges = [
            thresholds(X, np.where(y == one, 1.0, -1.0), **settings).zero
            for one in np.unique(y)[: 1 if len(np.unique(y)) == 2 else None]
        ]
        edges = [edge for edge in edges if np.isfinite(edge) and edge > 0]
        return max(edges, default=1.0)

    def _judge(self, model: Any, X: Any, y: Any, weights: Any) -> float:
        used = weights if weights.sum() > 0 else None
        known = np.isin(y, model.classes_)
        if not known.all():
            margins = np.full(len(y), -np.inf)
            margins[known] = model.robust_margins(X[known], y[known], self.attack_eps_)
            return float(np.average(margins > 0, weights=used))
        return model.robust_score(X, y, self.attack_eps_, used)

    def fit(self, X, y, sample_weight=None):
        """Choose the radius, then fit on all samples; returns self."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        if len(np.unique(y)) < 2:
            raise AdvlabError("y must have at least 2 classes", "one class")
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self._choose(X, y, weights)
        return self._finish(X, y, weights)
