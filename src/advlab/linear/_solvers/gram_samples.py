"""What squared-loss problems with the same samples share: [X, 1], its Gram matrix, its moments."""

import numpy as np

from ...core.checks import Array
from .problem import LinearProblem


class GramSamples:
    """X = [x, 1] with the intercept's column, 2X'WX and 2X'Wy.

    With many features only the part of the Gram matrix that faces have asked for is computed.

    Args:
        problem: dense; its radii do not matter.
    """

    def __init__(self, problem: LinearProblem):
        n, d = problem.shape
        self.x = np.hstack([problem.x, np.ones((n, 1))]) if problem.intercept else problem.x
        self.twice = 2 * problem.weights
        self.moment = (self.twice * problem.y) @ self.x
        self.whole = d <= min(2 * n, 2000)
        if self.whole:
            half = self.x * np.sqrt(self.twice)[:, None]
            self.gram = half.T @ half
            return
        self.place = np.full(self.x.shape[1], -1)
        self.used, self.gram, self.rows = 0, np.zeros((0, 0)), np.zeros((0, n))

    def gram_of(self, kept: np.ndarray | slice) -> Array:
        """The Gram matrix of some columns."""
        if isinstance(kept, slice) and self.whole:
            return self.gram
        columns = np.arange(self.x.shape[1]) if isinstance(kept, slice) else kept
        if not self.whole:
            self._cover(columns[self.place[columns] < 0])
            columns = self.place[columns]
        return self.gram[columns[:, None], columns]

    def _cover(self, new: np.ndarray) -> None:
        if not len(new):
            return
        begin, end = self.used, self.used + len(new)
        if end > len(self.gram):
            room = max(2 * len(self.gram), end, 64)
            gram, rows = np.zeros((room, room)), np.zeros((room, self.rows.shape[1]))
            gram[:begin, :begin], rows[:begin] = self.gram[:begin, :begin], self.rows[:begin]
            self.gram, self.rows = gram, rows
        self.rows[begin:end] = self.x[:, new].T
        block = (self.rows[begin:end] * self.twice) @ self.rows[:end].T
        self.gram[begin:end, :end] = block
        self.gram[:begin, begin:end] = block[:, :begin].T
        self.place[new] = np.arange(begin, end)
        self.used = end


def shared_samples(problem: LinearProblem) -> GramSamples:
    found = problem.shared.get("samples")
    if found is None:
        found = problem.shared["samples"] = GramSamples(problem)
    return found
