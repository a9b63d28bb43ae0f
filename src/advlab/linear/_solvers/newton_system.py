"""The linear system of a Newton step, of the size of samples or features, whichever is smaller.

    minimise over theta, e   sum_i alpha_i (x_i'theta + s_i'e)^2/2 + sum_j ridge_j theta_j^2/2
                             + theta'C e + e'E e/2 - r'theta - q'e

with a few e (intercept, attack, and one for the rank-one part of the norm). With at most as many
features as samples, X' diag(alpha) X + diag(ridge) is factored. Else the multipliers
w = alpha (X theta + S e) are the unknowns, and 1/alpha + X diag(1/ridge) X' is factored: no large
numbers cancel when alpha grows at samples that are fitted exactly.
"""

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # type: ignore[attr-defined]

from ...core.checks import Array
from .problem import is_sparse


class NewtonSystem:
    """Solves for several right-hand sides (r, q).

    Args:
        x: (n, d).
        alpha: weights of the samples (n,), 0 or more.
        samples: S (n, m).
        ridge: the diagonal (d,), 0 or more.
        border: C (d, m).
        corner: E (m, m).
        reduced: E - C' diag(1/ridge) C, where it is known without cancellation.
        refine: steps of iterative refinement; the last steps of an interior point method need one.
    """

    def __init__(
        self, x: Any, alpha: Array, samples: Array, ridge: Array, border: Array, corner: Array,
        reduced: Array | None = None, refine: int = 1,
    ):  # fmt: skip
        self.reduced, self.refine = reduced, refine
        self.x, self.samples = x, samples
        n, d = x.shape
        self.wide = d >= n
        self.alpha = np.maximum(alpha, 1e-25 * float(alpha.max(initial=1e-300)))
        self.ridge, self.border, self.corner = ridge, border, corner
        if self.wide:
            self.ridge = np.maximum(ridge, 1e-25 * float(ridge.max(initial=1e-300)))
            self._factor_wide()
        else:
            self._factor_narrow()

    def _factor_narrow(self) -> None:
        gram = _transposed_times(_scaled(self.x, np.sqrt(self.alpha), None))
        gram[np.diag_indices_from(gram)] += self.ridge
        self.cholesky = _cholesky(gram)
        weighted = self.alpha[:, None] * self.samples
        self.whole_border = self.x.T @ weighted + self.border
        self.whole_corner = self.samples.T @ weighted + self.corner
        self.inverse_border = dpotrs(self.cholesky, self.whole_border, lower=1)[0]
        self.schur = self.whole_corner - self.whole_border.T @ self.inverse_border

    def _factor_wide(self) -> None:
        self.inverse = 1.0 / self.ridge
        gram = _times_transposed(_scaled(self.x, None, np.sqrt(self.inverse)))
        gram[np.diag_indices_from(gram)] += 1.0 / self.alpha
        self.cholesky = _cholesky(gram)
        lifted = self.inverse[:, None] * self.border
        self.seen = self.samples - self.x @ lifted
        self.inverse_border = dpotrs(self.cholesky, self.seen, lower=1)[0]
        self.lifted = lifted
        corner = self.corner - self.border.T @ lifted if self.reduced is None else self.reduced
        self.schur = corner + self.seen.T @ self.inverse_border

    def solve(self, r: Array, q: Array) -> tuple[Array, Array]:
        """(theta, e)."""
        return self._wide(r, q, self.refine) if self.wide else self._narrow(r, q, self.refine)

    def _narrow(self, r: Array, q: Array, refine: int) -> tuple[Array, Array]:
        theta, e = np.zeros_like(r), np.zeros_like(q)
        rest, corner = r, q
        for again in range(refine + 1):
            base = dpotrs(self.cholesky, rest, lower=1)[0]
            if len(q):
                more = np.linalg.solve(self.schur, corner - self.whole_border.T @ base)
                base = base - self.inverse_border @ more
                e = e + more
            theta = theta + base
            if again < refine:
                pulled = self.alpha * (self.x @ theta + self.samples @ e)
                rest = r - self.x.T @ pulled - self.ridge * theta - self.border @ e
                corner = q - self.samples.T @ pulled - self.border.T @ theta - self.corner @ e
        return theta, e

    def _wide(self, r: Array, q: Array, refine: int) -> tuple[Array, Array]:
        theta, e, w = np.zeros_like(r), np.zeros_like(q), np.zeros(len(self.alpha))
        rest, corner, miss = r, q, w
        for again in range(refine + 1):
            first = self.inverse * rest
            right = self.x @ first + miss
            dw = dpotrs(self.cholesky, right, lower=1)[0]
            if len(q):
                side = corner - self.border.T @ first - self.inverse_border.T @ right
                de = np.linalg.solve(self.schur, side)
                dw = dw + self.inverse_border @ de
                theta = theta - self.lifted @ de
                e = e + de
            theta = theta + first - self.inverse * (self.x.T @ dw)
            w = w + dw
            if again < refine:
                rest = r - self.x.T @ w - self.ridge * theta - self.border @ e
                corner = q - self.samples.T @ w - self.border.T @ theta - self.corner @ e
                miss = self.x @ theta + self.samples @ e - w / self.alpha
        return theta, e


def _cholesky(gram: Array) -> Array:
    """The factor; a matrix that is singular up to rounding is lifted a little."""
    lift = 1e-15 * float(np.diagonal(gram).max(initial=1e-300))
    for _ in range(8):
        factor, info = dpotrf(gram, lower=1, overwrite_a=0)
        if info == 0 and np.isfinite(factor[-1, -1]):
            return factor
        gram[np.diag_indices_from(gram)] += lift
        lift *= 30
    raise np.linalg.LinAlgError("the Newton matrix has no Cholesky factor")


def _scaled(x: Any, rows: Array | None, columns: Array | None) -> Any:
    if is_sparse(x):
        x = x if rows is None else x.multiply(rows[:, None]).tocsr()
        return x if columns is None else x.multiply(columns[None, :]).tocsr()
    x = x if rows is None else x * rows[:, None]
    return x if columns is None else x * columns


def _transposed_times(a: Any) -> Array:
    return (a.T @ a).toarray() if is_sparse(a) else a.T @ a


def _times_transposed(a: Any) -> Array:
    return (a @ a.T).toarray() if is_sparse(a) else a @ a.T
