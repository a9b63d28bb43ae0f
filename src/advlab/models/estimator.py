"""Estimators of scikit-learn, or whatever has their methods, as models without gradients."""

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import AdvlabError
from ..core.inputs import TROUBLES, whole_line

Method = Literal["decision_function", "predict_proba", "predict"]


class Estimator(nn.Module):
    """A fitted estimator as a black box: rows of numbers in, its scores or answers out.

    A classifier gives its `decision_function`, else its `predict_proba`, wherever the class with
    the largest score is the one that it predicts; else, as with the votes of `SVC` for three
    classes and more, it gives 1 for the class that it predicts and 0 for others. A regressor gives
    what it predicts. Inputs of more dimensions are flattened.

    Args:
        estimator: anything with `predict`, fitted.
        x: some inputs, on which scores are compared with predictions.

    Attributes:
        method: the method that is asked.
        classes: the labels in the order of the scores; None where there are none.

    Example:
        from sklearn.ensemble import GradientBoostingClassifier
        import advlab
        from advlab.threats import Ball
        clf = GradientBoostingClassifier().fit(x, y)
        advlab.evaluate(clf, x, y, Ball("linf", 0.1))
    """

    def __init__(self, estimator: Any, x: Tensor):
        super().__init__()
        self.estimator = estimator
        classes = getattr(estimator, "classes_", None)
        if isinstance(classes, list) or getattr(classes, "ndim", 1) > 1:
            raise AdvlabError("an estimator with one answer per row", "one with several outputs")
        self.classes = None if classes is None else tuple(np.asarray(classes).tolist())
        self.method: Method = self._chosen(x)

    @property
    def predicts(self) -> bool:
        """Whether it has no classes of its own: it predicts numbers, or the labels of clusters."""
        return self.classes is None and self.method == "predict"

    def forward(self, x: Tensor) -> Tensor:
        if len(x) == 0:
            few = self.forward(x.new_zeros(1, *x.shape[1:]))
            return few[:0]
        found = self._ask(self.method, x)
        if self.method == "predict" and self.classes is not None:
            found = (found[:, None] == np.array(self.classes)[None, :]).astype(np.float64)
        return torch.from_numpy(np.ascontiguousarray(found, dtype=np.float64)).to(x)

    def _chosen(self, x: Tensor) -> Method:
        if self.classes is None:
            return (
                "decision_function" if hasattr(self.estimator, "decision_function") else "predict"
            )
        predicted = self._ask("predict", x)
        for method in ("decision_function", "predict_proba"):
            if hasattr(self.estimator, method):
                answers = self._answers(self._ask(method, x))
                if answers is not None and bool((answers == predicted).all()):
                    return method
        return "predict"

    def _answers(self, scores: np.ndarray) -> np.ndarray | None:
        """The classes that scores stand for; None where they are of another number."""
        names = np.array(self.classes)
        if scores.ndim == 1:
            return names[(scores > 0).astype(int)] if len(names) == 2 else None
        return names[scores.argmax(1)] if scores.shape[1] == len(names) else None

    def _ask(self, method: Method, x: Tensor) -> np.ndarray:
        rows = x.detach().flatten(1).cpu()
        rows = rows if rows.dtype in (torch.float32, torch.float64) else rows.to(torch.float32)
        try:
            found = getattr(self.estimator, method)(rows.numpy())
        except TROUBLES as error:
            raise AdvlabError(
                f"an estimator, fitted, that takes rows of {rows.shape[1]} numbers",
                whole_line(error),
            ) from None
        return np.asarray(found)
