"""Laws of one coordinate, of variance 1, that Definition 2.1 excludes in any units."""

from math import sqrt
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ....core.config import Config
from ....core.errors import AdvlabError
from ....core.randomness import uniform

Numbers = float | np.ndarray
UnitShape = Literal["uniform", "signs", "laplace", "student"]


class UnitLaw(Config):
    """A symmetric law of variance 1 that is not strongly log-concave.

    "uniform" on [-sqrt 3, sqrt 3] is bounded and log-concave; "signs", a fair coin +-1, is bounded
    and has no density; "laplace" is log-concave without being sub-Gaussian; "student", Student's t
    with 4 degrees of freedom, is neither, and has no fourth moment.
    """

    shape: UnitShape
    lam: ClassVar[float] = 0.0
    """No lam > 0 makes it lam-strongly log-concave."""
    variance: ClassVar[float] = 1.0

    def log_density(self, t: Numbers) -> Numbers:
        """Up to a constant."""
        if self.shape == "signs":
            raise AdvlabError("a law with a density", "a fair coin")
        if self.shape == "uniform":
            return np.where(np.abs(t) <= sqrt(3), 0.0, -np.inf)[()]
        return -sqrt(2) * np.abs(t) if self.shape == "laplace" else -2.5 * np.log1p(t**2 / 2)

    def draw(self, like: Tensor, rng: torch.Generator) -> Tensor:
        """Numbers in the shape of `like`, by the inverse of the distribution function."""
        # In (-1/2, 1/2), ends excluded.
        u = uniform(like, rng).sub_(0.5).clamp_(min=torch.finfo(like.dtype).eps / 2 - 0.5)
        if self.shape == "uniform":
            return u.mul_(2 * sqrt(3))
        if self.shape == "signs":
            return torch.where(u < 0, -1.0, 1.0).to(like)
        if self.shape == "laplace":
            return u.sign() * u.abs().mul_(-2).log1p_().div_(-sqrt(2))
        # With a = 4 p (1 - p) the quantile is 2 sqrt(q - 1), q = cos(arccos(sqrt a)/3)/sqrt a
        # (Shaw 2006); over sqrt 2 for variance 1.
        root = (1 - 4 * u.square()).sqrt_()
        q = torch.cos(torch.arccos(root) / 3) / root
        return u.sign() * (q - 1).clamp_(min=0).mul_(2).sqrt_()
