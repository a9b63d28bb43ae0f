"""The schedules of the asymptotic analysis (sections 4.1 and C.3), as functions of the step.

Constants that the paper leaves open are arguments, and 1 unless given.
"""

from dataclasses import dataclass

import numpy as np

from ....core.checks import ArrayLike, Numbers, Scalar, length, nonnegative, scalar
from .inputs import log3, sizes


@dataclass(frozen=True)
class Clamped:
    """A number that the formula would make negative (or undefined) and that is 0 instead."""

    value: float
    formula: float
    """What the formula says; nan where it is undefined."""

    @property
    def clamped(self) -> bool:
        """Whether the formula was left for 0."""
        return self.value != self.formula

    def __str__(self) -> str:
        return f"{self.value:.6g} (clamped, formula {self.formula:.6g})" if self.clamped else (
            f"{self.value:.6g}"
        )  # fmt: skip


def regularisation(d: Scalar) -> Clamped:
    """lambda = log log log d/d, and 0 below d = 16, where that is negative (section 4)."""
    formula = log3(d) / float(d)
    return Clamped(formula if formula > 0 else 0.0, formula)


def bias_end(k: Scalar) -> float:
    """k^-0.5001: where the bias stops growing (section 4.1)."""
    return float(length("k", k) ** -0.5001)


def bias(
    step: ArrayLike, d: Scalar, k: Scalar, *, eta: Scalar, start: Scalar, C: Scalar = 1.0
) -> Numbers:
    """b(t) = min(b(0) + t eta C/d, k^-0.5001): b grows by eta C/d per step, then stops.

    The proofs want C to be 1/20 of the constant with which signals E[y 1(..) z_j] exceed 1/d.

    Args:
        step: t, a number or an array.
        d: the dimension.
        k: the sparsity.
        eta: the learning rate.
        start: b(0).
        C: the constant of the growth.
    """
    dimension, sparsity = sizes(d, k)
    slope = length("eta", eta) * length("C", C) / dimension
    return np.minimum(scalar("start", start) + nonnegative("step", step) * slope,
                      bias_end(sparsity))[()]  # fmt: skip


def bias_start(d: Scalar, sigma0: Scalar, c1: Scalar = 2.0) -> float:
    """b(0) = sqrt(c1 log d) sigma0 (section C.3)."""
    return float(np.sqrt(length("c1", c1) * np.log(length("d", d))) * length("sigma0", sigma0))


def weight_scale(bias: ArrayLike, d: Scalar, c1: Scalar = 2.0) -> Numbers:
    """sigma_w(t) = b(t)/sqrt(c1 log d): what sizes of weights are compared with (section B)."""
    return (nonnegative("bias", bias) / np.sqrt(length("c1", c1) * np.log(length("d", d))))[()]


def noise_scale(
    step: ArrayLike, bias: ArrayLike, d: Scalar, *, T_a: Scalar, c: Scalar = 1.0
) -> Numbers:
    """sigma_rho(t) = c b(t) (log log log d)^3/sqrt(log d) up to T_a, with log d from there on.

    Below d = 16 the cube would be negative, and the noise is 0.

    Args:
        step: t, a number or an array.
        bias: b(t).
        d: the dimension.
        T_a: the step of the change (section 4.1).
        c: the open constant.
    """
    t, b = nonnegative("step", step), nonnegative("bias", bias)
    factor = length("c", c) * log3(d) ** 3 if log3(d) > 0 else 0.0
    logarithm = np.log(length("d", d))
    return (b * factor / np.where(t <= scalar("T_a", T_a), np.sqrt(logarithm), logarithm))[()]
