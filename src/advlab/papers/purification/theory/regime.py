"""What the theorems say at given sizes: radii, times, conditions (section 5, appendices C to G).

The theorems are orders. Each number here has all its open constants equal to 1, so a condition that
holds may still fail for the true constants; one that fails by orders of magnitude does fail.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ....core.checks import Scalar, chosen, length, scalar
from ....core.errors import AdvlabError
from .inputs import sizes
from .schedules import Clamped, bias_end, bias_start, noise_scale, regularisation

NORMS = ("l2", "linf")
Side = Literal["robust", "breaks"]


@dataclass(frozen=True)
class Condition:
    """One line that theorems ask for: `value` must be on the right side of `limit`."""

    name: str
    value: float
    limit: float
    relation: Literal["<", "<=", ">", ">="]
    needed_by: tuple[str, ...]
    """Of "robust l2", "breaks l2", "robust linf", "breaks linf", "gap l2", "gap linf", "ntk"."""

    @property
    def satisfied(self) -> bool:
        """Whether the value is on the right side."""
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
        return bool(compare[self.relation](self.value, self.limit))

    def __str__(self) -> str:
        mark = "ok      " if self.satisfied else "VIOLATED"
        return f"{mark} {self.name}: {self.value:.4g} {self.relation} {self.limit:.4g}"


@dataclass(frozen=True)
class Statement:
    """What the theorems say of a radius: whether each side speaks, and why not if none does."""

    robust: bool
    """Adversarial training is robust at this radius."""
    breaks: bool
    """Clean training breaks at this radius."""
    reason: str

    @property
    def silent(self) -> bool:
        """Whether the theorems say nothing of the radius."""
        return not (self.robust or self.breaks)

    def __str__(self) -> str:
        both = ("below the robust radius", self.robust), ("above the break radius", self.breaks)
        words = [text for text, said in both if said]
        return " and ".join(words) if words else f"silent: {self.reason}"


@dataclass(frozen=True)
class Regime:
    """All radii, times and constants at one (d, k), and the conditions of the theorems."""

    d: int
    k: float
    radii: dict[str, float]
    times: dict[str, float]
    constants: dict[str, float]
    lam: Clamped
    conditions: tuple[Condition, ...] = field(repr=False)

    @property
    def violated(self) -> tuple[Condition, ...]:
        """The conditions that fail."""
        return tuple(one for one in self.conditions if not one.satisfied)

    def radius(self, side: Side, norm: str) -> float:
        """The appendix's radius: clean training breaks from it on, adversarial is robust up to."""
        return self.radii[f"{side} {chosen('norm', norm, NORMS)}"]

    def says(self, tau: Scalar, norm: str = "l2") -> Statement:
        """What is proved of perturbations of size tau at these sizes, constants set to 1."""
        size, reasons, told = scalar("tau", tau), [], {}
        for side, reached in (("robust", size <= self.radius("robust", norm)),
                              ("breaks", size >= self.radius("breaks", norm))):  # fmt: skip
            broken = [one.name for one in self.violated if f"{side} {norm}" in one.needed_by]
            told[side] = bool(reached and not broken)
            if reached and broken:
                reasons.append(f"{side} would need {' and '.join(broken)}")
        between = "between the robust and the break radius"
        return Statement(told["robust"], told["breaks"], "; ".join(reasons) or between)

    def table(self) -> str:
        """Every number with its name, a line each, the violated conditions marked."""
        lines = [f"d = {self.d}, k = {self.k:g} = d^{np.log(self.k) / np.log(float(self.d)):.4f}"]
        groups = (("radii", self.radii), ("times", self.times), ("constants", self.constants))
        for title, numbers in groups:
            lines += [f"{title}:"] + [f"  {name} = {one:.4g}" for name, one in numbers.items()]
        lines += [f"  lambda = {self.lam}", "conditions (constants set to 1):"]
        return "\n".join([*lines, *(f"  {one}" for one in self.conditions)])

    def __str__(self) -> str:
        return self.table()


def regime(
    d: Scalar,
    k: Scalar,
    *,
    c0: Scalar = 1e-5,
    gamma: Scalar = 0.005,
    c: Scalar = 1e-3,
    c1_linf: Scalar | None = None,
    c6: Scalar = 0.2,
    eta: Scalar = 1.0,
    sigma0: Scalar | None = None,
    sx: Scalar = 0.0,
    M_columns_l1: Scalar = 1.0,
    Mw_max: Scalar = 1.0,
) -> Regime:
    """Every radius, time and condition of the theorems for dimension d, sparsity k, width d^(1+c0).

    Args:
        d: the dimension.
        k: the sparsity, between 1 and d.
        c0: the width is d^(1+c0).
        gamma: of Lemma B.2, below 0.1; Xi2 = d^(2 gamma c0).
        c: the slack of Theorems 5.1 and 5.3.
        c1_linf: that of Theorem 5.4; c0/2 unless given.
        c6: that of the NTK lower bound, Theorem G.1.
        eta: the learning rate; times are in steps.
        sigma0: the scale of the start; 1/d unless given.
        sx: the Gaussian noise of the inputs.
        M_columns_l1: max_j ||M_j||_1; 1 for M = I.
        Mw_max: ||M w*||_inf; about 1 for M = I.

    Example:
        from advlab.papers.purification.theory import regime
        print(regime(256, 30))   # flags the conditions that fail
    """
    dimension, sparsity = sizes(d, k)
    share = length("gamma", gamma)
    if share >= 0.1:
        raise AdvlabError("gamma inside (0, 0.1)", share)
    small = length("c0", c0)
    free = _Free(
        float(dimension), sparsity, small, share, length("c", c),
        small / 2 if c1_linf is None else length("c1_linf", c1_linf), length("c6", c6),
        length("eta", eta), 1 / dimension if sigma0 is None else length("sigma0", sigma0),
        scalar("sx", sx), length("M_columns_l1", M_columns_l1), length("Mw_max", Mw_max),
    )  # fmt: skip
    radii = _radii(free)
    lam = regularisation(dimension)
    return Regime(dimension, sparsity, radii, _times(free), _constants(free), lam,
                  _conditions(free, radii))  # fmt: skip


@dataclass(frozen=True)
class _Free:
    d: float
    k: float
    c0: float
    gamma: float
    c: float
    c1_linf: float
    c6: float
    eta: float
    sigma0: float
    sx: float
    columns: float
    mixture: float

    @property
    def Xi2(self) -> float:
        return self.d ** (2 * self.gamma * self.c0)


def _radii(f: _Free) -> dict[str, float]:
    k, boost = f.k, f.Xi2**10
    found = {
        "robust l2": 1 / np.sqrt(k * f.d**f.c0),
        "breaks l2": boost * np.sqrt(f.d) / k**2,
        "robust linf": 1 / (k**1.75 * f.columns * f.d**f.c0),
        "breaks linf": boost * f.mixture / k**2,
        "robust l2, main text (k = d^0.36)": k ** -(0.5 + f.c),
        "breaks l2, main text (k = d^0.36)": k ** -(0.5 + 10 * f.c),
        "robust linf, main text": k ** -(1.75 + 2 * f.c0),
        "breaks linf, main text": k ** -(2 - f.c1_linf),
        "ntk linf": f.d**-f.c6,
        "linear oracle breaks l2": f.d**-0.5,
    }
    return {name: float(value) for name, value in found.items()}


def _times(f: _Free) -> dict[str, float]:
    """T_g in its corrected form (the paper's bound on it contradicts its definition)."""
    d, k, logarithm, m = f.d, f.k, np.log(f.d), f.d ** (1 + f.c0)
    raw = {
        "T_a": d * f.sigma0 * logarithm**2.5,
        "T_b": d**2 * f.sigma0 / k,
        "T_e": d / (f.Xi2 * logarithm),
        "T_c": d**1.01,
        "T_c, appendix": d * f.Xi2**6,
        # d^log d; e^700 stands for all that float64 cannot hold.
        "T_f at most": np.exp(min(logarithm**2, 700.0)),
        "T_g": k ** (2 + f.c),
        "T_g, appendix": k**2 * f.Xi2**4 * m * logarithm / d,
    }
    return {name: float(value / f.eta) for name, value in raw.items()}


def _constants(f: _Free) -> dict[str, float]:
    c1 = 2 + 2 * (1 - f.gamma) * f.c0
    b0, end = bias_start(f.d, f.sigma0, c1), bias_end(f.k)
    return {
        "c1": c1,
        "c2": f.gamma * f.c0,
        "Xi1": f.d ** (f.gamma * f.c0 / 4),
        "Xi2": f.Xi2,
        "beta": float(1 / (np.sqrt(f.k) * f.Xi2**10)),
        "width": f.d ** (1 + f.c0),
        "b start": b0,
        "b end": end,
        "b end, appendix": float(f.Xi2**-8 / np.sqrt(f.k)),
        "b slope": f.eta / f.d,
        "sigma_rho start": float(noise_scale(0, b0, f.d, T_a=0)),
        "sigma_rho end": float(noise_scale(1, end, f.d, T_a=0)),
        "spike size": f.k**-0.501,
    }


def _conditions(f: _Free, radii: dict[str, float]) -> tuple[Condition, ...]:
    d, k = f.d, f.k
    robust, breaks = ("robust l2", "robust linf"), ("breaks l2", "breaks linf")
    noise = d ** (2 * (1 - 2 * f.c0)) / k**5.5
    everywhere = (*robust, *breaks)
    return (
        Condition("k <= d^0.499 (the data)", k, d**0.499, "<=", everywhere),
        Condition("k >= d^0.3334 (l2 window)", k, d**0.3334, ">=", ("gap l2",)),
        Condition("k <= d^0.3999 (l2 window)", k, d**0.3999, "<=", ("gap l2", *robust)),
        Condition("k^2.5 < d^(1-2 c0)/log d", k**2.5, d ** (1 - 2 * f.c0) / np.log(d), "<", robust),
        Condition("k > d^((1-c0)/3)", k, d ** ((1 - f.c0) / 3), ">", breaks),
        Condition("k >= d^c1 (linf window)", k, d**f.c1_linf, ">=", ("gap linf",)),
        Condition("k <= d^0.399 (linf window)", k, d**0.399, "<=", ("gap linf",)),
        Condition("sx <= d^(2(1-2 c0))/k^5.5", f.sx, min(1.0, noise), "<=", ("robust l2",)),
        Condition("sx <= 1", f.sx, 1.0, "<=", everywhere),
        Condition("max ||M_j||_1 <= d^0.1248", f.columns, d**0.1248, "<=", ("gap linf",)),
        Condition("||M w*||_inf <= d^0.1248", f.mixture, d**0.1248, "<=", ("gap linf",)),
        Condition("break < robust radius, l2", radii["breaks l2"], radii["robust l2"], "<",
                  ("gap l2",)),
        Condition("break < robust radius, linf", radii["breaks linf"], radii["robust linf"], "<",
                  ("gap linf",)),
        Condition("gamma <= 1/200 (Xi2^100 <= d^c0)", f.gamma, 1 / 200, "<=", everywhere),
        Condition("lambda >= 1/d", regularisation(f.d).value, 1 / d, ">=", everywhere),
        Condition("k >= d^(c6/100) (NTK)", k, d ** (f.c6 / 100), ">=", ("ntk",)),
        Condition("k <= d^(0.5 - c6/100) (NTK)", k, d ** (0.5 - f.c6 / 100), "<=", ("ntk",)),
    )  # fmt: skip
