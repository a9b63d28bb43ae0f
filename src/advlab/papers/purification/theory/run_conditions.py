"""What the theorems ask of a run, not only of d and k: width, start, noise, schedule, data.

Orders have their open constants equal to 1, as in `regime`; where a paper says Theta, a factor of
ten either way is allowed.
"""

import math

from ....core.checks import Scalar, chosen, length, nonnegative, scalar
from .inputs import sizes
from .regime import NORMS, Condition, regime
from .schedules import regularisation

FACTOR = 10.0
"""How far a Theta may be from its formula."""


def run_conditions(
    d: Scalar,
    k: Scalar,
    *,
    width: Scalar,
    penalty: Scalar,
    sigma0: Scalar,
    noise: Scalar,
    tau: Scalar,
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
        norm: its norm.
        batch_share: the share of the training set in a step (1: full batches).
        kept: the share of draws that no filter rejects (1).

    Example:
        from advlab.papers.purification.theory import run_conditions
        facts = run_conditions(256, 30, width=1280, penalty=2e-5, sigma0=0.01, noise=0, tau=0.22)
        [str(one) for one in facts if not one.satisfied]
    """
    dimension, sparsity = sizes(d, k)
    kind = chosen("norm", norm, NORMS)
    sides = (f"robust {kind}", f"breaks {kind}")
    facts = regime(dimension, sparsity)
    asked = tuple(one for one in facts.conditions if {*sides, f"gap {kind}"} & {*one.needed_by})
    lam, formula = nonnegative("penalty", penalty), regularisation(dimension).value
    off = abs(math.log10(float(lam) / formula)) if lam > 0 and formula > 0 else math.inf
    size = length("tau", tau)
    return (
        *asked,
        Condition("m > d", length("width", width), float(dimension), ">", sides),
        Condition("sigma_0 <= 1/d", length("sigma0", sigma0), 1 / dimension, "<=", sides),
        Condition("lambda near log log log d/d, in powers of ten", off, math.log10(FACTOR), "<=",
                  sides),
        Condition("noise sigma_rho", scalar("noise", noise), 0.0, ">", sides),
        Condition("tau at the robust radius", size, facts.radius("robust", kind), "<=", sides[:1]),
        Condition("tau at the break radius", size, facts.radius("breaks", kind), ">=", sides[1:]),
        Condition("share of the pool in a step", scalar("batch_share", batch_share), 1.0, ">=",
                  sides),
        Condition("share of draws kept", scalar("kept", kept), 1.0, ">=", sides),
    )  # fmt: skip
