"""The linear model y = theta0'x + u of the generalization paper (eq. 4)."""

from collections.abc import Callable, Sequence
from functools import cached_property
from math import atanh, sqrt
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator
from torch import Tensor

from ....core.config import Config
from ....core.errors import AdvlabError
from ....core.randomness import Rng, normal, uniform
from ....data.base import DataModel

Law = Literal["gaussian", "uniform", "truncated-t"]

T_CUT = 10.0
"""Student's t with two degrees of freedom is cut here: heavy shoulders, yet every moment exists."""


class Regression(NamedTuple):
    """Inputs x of shape (n, d) and answers y of shape (n,); a stack has one more axis in front."""

    x: Float[Tensor, "*stack n d"]
    y: Float[Tensor, "*stack n"]


class SparseVector(Config):
    """k equal entries, then zeros."""

    k: PositiveInt
    value: float = 1.0


class AR1(Config):
    """Entry (i, j) of the covariance is rho^|i-j|."""

    rho: Annotated[float, Field(gt=-1, lt=1)]


class LinearModel(DataModel):
    """y = theta0'x + u with x of covariance Sigma and u ~ N(0, sigma2) independent of x.

    x = L z with L L' = Sigma and independent standardised entries in z, so every law of z has the
    same second moments. The closed forms of `advlab.linear` need the gaussian one.
    """

    d: PositiveInt
    theta0: Literal["ones", "unit"] | SparseVector | tuple[float, ...] = "ones"
    """All ones, all 1/sqrt(d), k equal entries then zeros, or the vector itself."""
    sigma2: NonNegativeFloat = 1.0
    cov: AR1 | tuple[tuple[float, ...], ...] | None = None
    """None is the identity."""
    law: Law = "gaussian"

    @model_validator(mode="after")
    def _shapes_agree(self) -> "LinearModel":
        if isinstance(self.theta0, SparseVector) and self.theta0.k > self.d:
            raise ValueError(f"theta0 has k = {self.theta0.k} non-zero entries in d = {self.d}")
        if isinstance(self.theta0, tuple) and len(self.theta0) != self.d:
            raise ValueError(f"theta0 has {len(self.theta0)} entries but d = {self.d}")
        if isinstance(self.cov, tuple):
            _check_covariance(self.cov, self.d)
        return self

    def sample(self, rng: torch.Generator, n: int | None = None) -> Regression:
        """n independent examples (the model's own n by default), float64."""
        n = self.n if n is None else n
        if n < 1:
            raise AdvlabError("a sample needs n >= 1", n)
        x = _LAWS[self.law](torch.empty(n, self.d, dtype=torch.float64), rng)
        if self.cov is not None:
            x = x @ self._root.T
        noise = normal(torch.empty(n, dtype=torch.float64), rng)
        return Regression(x, x @ torch.from_numpy(self.theta0_vector()) + sqrt(self.sigma2) * noise)

    def sample_stack(
        self, generators: Sequence[torch.Generator], n: int | None = None
    ) -> Regression:
        """x of shape (R, n, d) and y of shape (R, n); replicate r depends on generator r only."""
        return Regression(*super().sample_stack(generators, n))

    def theta0_vector(self) -> Float[np.ndarray, " d"]:
        """theta0 as numbers."""
        if isinstance(self.theta0, SparseVector):
            return np.where(np.arange(self.d) < self.theta0.k, self.theta0.value, 0.0)
        if isinstance(self.theta0, tuple):
            return np.array(self.theta0, dtype=np.float64)
        return np.full(self.d, 1.0 if self.theta0 == "ones" else 1 / sqrt(self.d))

    def covariance(self) -> Float[np.ndarray, "d d"]:
        """Sigma, the covariance of x."""
        if self.cov is None:
            return np.eye(self.d)
        if isinstance(self.cov, AR1):
            index = np.arange(self.d)
            return self.cov.rho ** np.abs(index[:, None] - index)
        return np.array(self.cov, dtype=np.float64)

    @property
    def v2(self) -> float:
        """v^2 = theta0' Sigma theta0 + sigma2, the variance of y and the risk of the zero model."""
        theta0 = self.theta0_vector()
        image = theta0 if self.cov is None else self.covariance() @ theta0
        return float(theta0 @ image) + self.sigma2

    @cached_property
    def _root(self) -> Float[Tensor, "d d"]:
        return torch.linalg.cholesky(torch.from_numpy(self.covariance()))


def symmetrise(x: Float[Tensor, "*stack n d"], y: Float[Tensor, "*stack n"]) -> Regression:
    """The data and their mirror image: {(x, y), (-x, -y)}, the mirror image after the data."""
    return Regression(torch.cat([x, -x], dim=-2), torch.cat([y, -y], dim=-1))


def _check_covariance(rows: tuple[tuple[float, ...], ...], d: int) -> None:
    if len(rows) != d or any(len(row) != d for row in rows):
        raise ValueError(f"cov must have {d} rows of {d} entries, as d = {d}")
    matrix = np.array(rows)
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0):
        raise ValueError("cov must be symmetric")
    if np.linalg.eigvalsh(matrix)[0] <= d * np.finfo(np.float64).eps * np.abs(matrix).max():
        raise ValueError("cov must be positive definite")


def _uniform(like: Tensor, rng: Rng) -> Tensor:
    return sqrt(3.0) * (2 * uniform(like, rng) - 1)


def _truncated_t(like: Tensor, rng: Rng) -> Tensor:
    # P(T <= t) = (1 + a)/2 with a = t/sqrt(2 + t^2), so a is uniform on [-cut, cut] after the cut,
    # t = a sqrt(2/(1 - a^2)), and E t^2 = 2 (atanh(cut) - cut)/cut.
    cut = T_CUT / sqrt(2 + T_CUT**2)
    a = cut * (2 * uniform(like, rng) - 1)
    return a * (2 / (1 - a**2)).sqrt() / sqrt(2 * (atanh(cut) - cut) / cut)


_LAWS: dict[Law, Callable[[Tensor, Rng], Tensor]] = {
    "gaussian": normal,
    "uniform": _uniform,
    "truncated-t": _truncated_t,
}
