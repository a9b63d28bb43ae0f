"""What the theorems ask of a run, not only of d and k: width, start, noise, times, data.

Orders have their open constants and Xi2 equal to 1, as in `regime`; where a paper says Theta, a
factor of ten either way is allowed. c0 is that of the width, m = d^(1 + c0).
"""

import math

from ....core.checks import Scalar, chosen, length, nonnegative, scalar
from .inputs import sizes
from .regime import NORMS, Condition, regime
from .schedules import regularisation

FACTOR = 10.0
"""How far a Theta may be from its formula."""
LEAST_C0 = 1e-5
"""c0 of Corollary F.3, for a width that is not above d."""


def run_conditions(
    d: Scalar,
    k: Scalar,
    *,
    width: Scalar,
    penalty: Scalar,
    sigma0: Scalar,
    noise: Scalar,
    tau: Scalar,
    rate: Scalar,
    clean_steps: Scalar,
    adversarial_steps: Scalar,
    sx: Scalar = 0.0,
    norm: str = "l2",
    batch_share: Scalar = 1.0,
    kept: Scalar = 1.0,
) -> tuple[Condition, ...]:
    """The conditions of Theorems 5.1 to 5.4 on a run, those of `regime` on d and k first.

    Args:
        d: the dimension.
        k: the sparsity.
        width: m, the number of neurons (d^(1+c0)).
        penalty: lambda (log log log d/d).
        sigma0: the scale of the start (1/poly(d)).
        noise: sigma_rho, the noise inside (positive).
        tau: the radius of the attack.
        rate: eta, the learning rate.
        clean_steps: T_f, at least 1/(eta lambda) for Theorem E.1 and d/eta for Theorem F.1.
        adversarial_steps: T_g, of the order of k^2 m log d/(eta d) for Theorems F.1 and F.4.
        sx: the noise of the inputs, which Theorem F.1 bounds by d^(2(1 - 2 c0))/k^5.5.
        norm: its norm.
        batch_share: the share of the training set in a step (1: full batches).
        kept: the share of draws that no filter rejects (1).

    Example:
        from advlab.papers.purification.theory import run_conditions
        facts = run_conditions(256, 30, width=1280, penalty=2e-5, sigma0=0.01, noise=0, tau=0.22,
                               rate=3, clean_steps=1000, adversarial_steps=600)
        [str(one) for one in facts if not one.satisfied]
    """
    dimension, sparsity = sizes(d, k)
    kind, neurons = chosen("norm", norm, NORMS), length("width", width)
    sides = (f"robust {kind}", f"breaks {kind}")
    c0 = max(math.log(neurons) / math.log(dimension) - 1, LEAST_C0)
    facts = regime(dimension, sparsity, c0=c0, sx=sx)
    asked = tuple(one for one in facts.conditions if {*sides, f"gap {kind}"} & {*one.needed_by})
    lam, formula = nonnegative("penalty", penalty), regularisation(dimension).value
    size = length("tau", tau)
    return (
        *asked,
        Condition("m > d", neurons, float(dimension), ">", sides),
        Condition("sigma_0 <= 1/d", length("sigma0", sigma0), 1 / dimension, "<=", sides),
        Condition("lambda near log log log d/d, in powers of ten", _apart(float(lam), formula),
                  math.log10(FACTOR), "<=", sides),
        Condition("noise sigma_rho", scalar("noise", noise), 0.0, ">", sides),
        Condition("tau at the robust radius", size, facts.radius("robust", kind), "<=", sides[:1]),
        Condition("tau at the break radius", size, facts.radius("breaks", kind), ">=", sides[1:]),
        *_times(dimension, sparsity, neurons, float(lam), length("rate", rate),
                (length("clean_steps", clean_steps), length("T_g", adversarial_steps)), sides),
        Condition("share of the pool in a step", scalar("batch_share", batch_share), 1.0, ">=",
                  sides),
        Condition("share of draws kept", scalar("kept", kept), 1.0, ">=", sides),
    )  # fmt: skip


def _times(
    d: int,
    k: float,
    m: float,
    lam: float,
    rate: float,
    steps: tuple[float, float],
    sides: tuple[str, str],
) -> tuple[Condition, ...]:
    """The clocks: T_f of Theorems E.1 and F.1, and T_g of Theorems F.1 and F.4."""
    clean, adversarial = steps
    clock = 1 / (rate * lam) if lam > 0 else math.inf
    whole = k**2 * m * math.log(d) / (rate * d)
    return (
        Condition("T_f >= 1/(eta lambda)", clean, clock, ">=", sides[1:]),
        Condition("T_f >= d/eta", clean, d / rate, ">=", sides),
        Condition("T_g near k^2 m log d/(eta d), in powers of ten", _apart(adversarial, whole),
                  math.log10(FACTOR), "<=", sides[:1]),
    )  # fmt: skip


def _apart(value: float, formula: float) -> float:
    """How many powers of ten a value is from what a formula says; infinite where one is 0."""
    return abs(math.log10(value / formula)) if value > 0 and formula > 0 else math.inf
