"""scikit-learn estimators of robust linear models; needs the extra `linear`."""

# scikit-learn has no types, and parameters are attributes of the classes that inherit from these.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportOptionalSubscript=false, reportGeneralTypeIssues=false

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..core.checks import Array, chosen, positive
from ..core.errors import AdvlabError
from ._solvers.multiclass import (
    joint_margins,
    joint_objective,
    solve_joint,
    without_features,
)
from ._solvers.sample_losses import CLASSIFICATION, REGRESSION
from .data_risks import robust_losses
from .default_radius import default_eps_of
from .solve import Prepared, prepare, radii_of, report, solve_at

DEFAULT = "default"


class _LinearEstimator(BaseEstimator):
    """What regression and classification share."""

    def _validated(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=reset, ensure_min_samples=1
        )

    def _settings(self, X: Any, weights: Array) -> dict[str, Any]:
        scales = self.scales
        if isinstance(scales, str):
            chosen("scales", scales, ("std",))
            scales = _deviations(X, weights)
        return dict(  # noqa: C408
            norm=self.norm, loss=self.loss, l1=self.l1, l2=self.l2, scales=scales,
            delta=getattr(self, "delta", 1.0), fit_intercept=self.fit_intercept,
            sample_weight=weights,
        )  # fmt: skip

    def _radius(self, ready: Prepared) -> Any:
        if isinstance(self.eps, str):
            if self.eps != DEFAULT:
                raise AdvlabError("eps must be a number, one per feature, or 'default'", self.eps)
            return default_eps_of(ready, 100, int(self.random_state or 0))
        return self.eps

    def _solve(self, X: Any, y: Array, settings: dict[str, Any], eps: Any = None):
        begin = time.perf_counter()
        ready = prepare(X, y, **settings)
        eps = self._radius(ready) if eps is None else eps
        radii, number = radii_of(eps, ready)
        problem, tol = ready.problem.at_radii(radii), float(positive("tol", self.tol))
        found, zero = solve_at(ready, problem, number, tol, int(self.max_iter), None)
        return report(ready, found, zero, eps, tol, time.perf_counter() - begin)

    def _keep(self, solution: Any, settings: dict[str, Any]) -> None:
        self.eps_, self.scales_ = solution.eps, settings["scales"]
        self.objective_, self.gap_ = solution.objective, solution.relative_gap
        self.n_iter_, self.status_ = max(solution.iterations, 1), solution.status
        self.method_, self.fit_time_ = solution.method, solution.seconds

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _deviations(X: Any, weights: Array) -> Array:
    share = weights / weights.sum()
    mean = np.asarray(share @ X).ravel()
    squares = X.multiply(X) if not isinstance(X, np.ndarray) else X**2
    return np.sqrt(np.maximum(np.asarray(share @ squares).ravel() - mean**2, 0.0))


class AdversarialRegressor(RegressorMixin, _LinearEstimator):
    """Linear regression under attack: min of mean loss(|y - theta'x - b| + eps |theta|_q).

    The inner maximum over the attack is exact, the minimum is found to a certified duality gap.

    Args:
        norm: of the attack: "l1", "l2", "linf" or any p >= 1.
        eps: the radius, one per feature, or "default": see `default_eps`.
        loss: "squared", "absolute" or "huber".
        delta: where Huber's loss turns linear.
        l1, l2: extra penalties.
        fit_intercept: the intercept is never attacked.
        scales: how far the attack reaches along each feature for eps = 1: an array, "std", or None.
        tol: the relative duality gap to stop at.
        max_iter: Newton steps.
        random_state: of the draws of eps = "default".

    Fitted: `coef_`, `intercept_`, `eps_`, `objective_`, `gap_` (relative), `n_iter_`, `status_`,
    `method_`, `fit_time_`.

    Example:
        from advlab.linear import AdversarialRegressor
        AdversarialRegressor(norm="linf", eps=0.1).fit(X, y).coef_
    """

    def __init__(
        self, norm="linf", eps=0.1, loss="squared", *, delta=1.35, l1=0.0, l2=0.0,
        fit_intercept=True, scales=None, tol=1e-8, max_iter=80, random_state=0,
    ):  # fmt: skip
        self.norm = norm
        self.eps = eps
        self.loss = loss
        self.delta = delta
        self.l1 = l1
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.scales = scales
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Find the model; returns self."""
        chosen("loss", self.loss, REGRESSION)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        settings = self._settings(X, weights)
        solution = self._solve(X, np.asarray(y, dtype=np.float64), settings)
        self._keep(solution, settings)
        self.coef_, self.intercept_ = solution.coef, solution.intercept
        return self

    def predict(self, X):
        """theta'x + b."""
        check_is_fitted(self)
        return np.asarray(self._validated(X, False) @ self.coef_) + self.intercept_

    def robust_loss(self, X, y, eps=None, sample_weight=None):
        """The mean loss under attack on data, with the radius of the fit or another one."""
        check_is_fitted(self)
        each = robust_losses(
            self.coef_, self.intercept_, self._validated(X, False), y,
            self.eps_ if eps is None else eps, self.norm, self.loss, delta=self.delta,
            scales=self.scales_,
        )  # fmt: skip
        return float(np.average(each, weights=sample_weight))


class AdversarialClassifier(ClassifierMixin, _LinearEstimator):
    """Linear classification under attack: min of mean loss(y (theta'x + b) - eps |theta|_q).

    Several classes: "joint" minimises the loss of the worst margin under attack,
    min_k s_y - s_k - eps |theta_y - theta_k|_q, which is exact for hinge (Crammer and Singer) and
    logistic loss; "ovr" solves one problem of two classes for each class. Softmax cross entropy is
    not offered: its inner maximum over the attack is that of a convex function, which is hard.

    Args:
        norm, eps, l1, l2, fit_intercept, scales, tol, max_iter, random_state: as in
            `AdversarialRegressor`.
        loss: "logistic" or "hinge".
        multi_class: "joint" or "ovr".

    Example:
        from advlab.linear import AdversarialClassifier
        AdversarialClassifier(norm="linf", eps=0.1).fit(X, y).score(X, y)
    """

    def __init__(
        self, norm="linf", eps=0.1, loss="logistic", *, multi_class="joint", l1=0.0, l2=0.0,
        fit_intercept=True, scales=None, tol=1e-8, max_iter=80, random_state=0,
    ):  # fmt: skip
        self.norm = norm
        self.eps = eps
        self.loss = loss
        self.multi_class = multi_class
        self.l1 = l1
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.scales = scales
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Find the model; returns self."""
        chosen("loss", self.loss, CLASSIFICATION)
        chosen("multi_class", self.multi_class, ("joint", "ovr"))
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        encoder = LabelEncoder().fit(y)
        self.classes_ = encoder.classes_
        codes = encoder.transform(y)
        if len(self.classes_) < 2:
            raise AdvlabError("y must have at least 2 classes", f"one class: {self.classes_[0]!r}")
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        settings = self._settings(X, weights)
        if len(self.classes_) == 2:
            solution = self._solve(X, np.where(codes == 1, 1.0, -1.0), settings)
            self._keep(solution, settings)
            self.coef_, self.intercept_ = solution.coef[None], np.array([solution.intercept])
        elif self.multi_class == "ovr":
            self._one_against_rest(X, codes, settings)
        else:
            self._joint(X, codes, settings)
        return self

    def _one_against_rest(self, X: Any, codes: np.ndarray, settings: dict[str, Any]) -> None:
        parts, eps = [], None
        for k in range(len(self.classes_)):
            parts.append(self._solve(X, np.where(codes == k, 1.0, -1.0), settings, eps))
            eps = parts[0].eps
        self._keep(max(parts, key=lambda one: one.relative_gap), settings)
        self.objective_ = float(sum(one.objective for one in parts))
        self.n_iter_ = max(sum(one.iterations for one in parts), 1)
        self.fit_time_ = float(sum(one.seconds for one in parts))
        self.coef_ = np.array([one.coef for one in parts])
        self.intercept_ = np.array([one.intercept for one in parts])

    def _joint(self, X: Any, codes: np.ndarray, settings: dict[str, Any]) -> None:
        begin = time.perf_counter()
        kept = settings["sample_weight"] > 0
        labels = np.where(codes == codes[kept][0], 1.0, -1.0)
        ready = prepare(X, labels, merge=False, **settings)
        codes = codes[kept]
        self.eps_ = self._radius(ready)
        self.scales_ = settings["scales"]
        radii, _ = radii_of(self.eps_, ready)
        problem = ready.problem.at_radii(radii)
        found = without_features(problem, codes, solve_joint(problem, codes, len(self.classes_)))
        value, least = found.value, found.least
        theta, b = found.theta, found.b
        self.status_ = "converged"
        if not problem.penalised:
            margin = float(joint_margins(problem, codes, theta, b).min())
            if margin > 0:
                wide = solve_joint(problem, codes, len(self.classes_), hard=True)
                at_wide = float(joint_margins(problem, codes, wide.theta, wide.b).min())
                if at_wide > 0.99:
                    theta, b, margin = wide.theta, wide.b, at_wide
                reach = 1.0 + 1e-9 if not problem.loss.smooth else 20.0
                theta, b = theta * (reach / margin), b * (reach / margin)
                value, least = joint_objective(problem, codes, theta, b), 0.0
                if problem.loss.smooth:
                    self.status_ = "no minimiser: the data are separable under this attack"
        gap = max(value - least, 0.0)
        self.objective_, self.gap_ = value, gap / value if value > 0 else 0.0
        self.n_iter_, self.method_ = max(found.steps, 1), "cone programme, all classes jointly"
        self.fit_time_ = time.perf_counter() - begin
        self.coef_ = theta
        self.intercept_ = b if ready.shift is None else b - theta @ ready.shift
        if not self.status_.startswith("no") and self.gap_ > self.tol and gap > 1e-13:
            self.status_ = f"not converged: relative duality gap {self.gap_:.2g}"
        if self.status_ == "converged" and not theta.any():
            self.status_ = "zero: the attack is too strong for any feature to be of use"
        elif self.status_ != "converged":
            warnings.warn(self.status_, ConvergenceWarning, stacklevel=3)

    def decision_function(self, X):
        """Scores: (n,) for two classes, (n, classes) for more."""
        check_is_fitted(self)
        scores = np.asarray(self._validated(X, False) @ self.coef_.T) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """The class of the largest score."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def robust_margins(self, X, y, eps=None):
        """How far each sample stays on its side under the worst attack; negative is an error."""
        scores = self.decision_function(X)
        unseen = np.setdiff1d(y, self.classes_)
        if len(unseen):
            raise AdvlabError(f"y must be of the classes {self.classes_[:5]}", f"{unseen[:5]}")
        codes = np.searchsorted(self.classes_, y)
        theta, b = self.coef_, self.intercept_
        if scores.ndim == 1:
            theta, b = np.vstack([np.zeros_like(theta), theta]), np.append(0.0, b)
        ready = prepare(
            self._validated(X, False), np.where(np.arange(len(codes)) % 2, 1.0, -1.0)
            if len(codes) > 1 else np.ones(1),
            norm=self.norm, fit_intercept=False, scales=self.scales_, merge=False,
        )  # fmt: skip
        radii, _ = radii_of(self.eps_ if eps is None else eps, ready)
        return joint_margins(ready.problem.at_radii(radii), codes, theta, b)

    def robust_score(self, X, y, eps=None, sample_weight=None):
        """The share of samples that no attack of this radius changes, exactly."""
        margins = self.robust_margins(X, y, eps)
        return float(np.average(margins > 0, weights=sample_weight))
