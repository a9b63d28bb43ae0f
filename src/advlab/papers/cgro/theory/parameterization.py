"""What Theorem 4.1 asks of its parameters (sections 3.1, 3.3, Parameterization 3.1 and its proof).

The paper leaves powers of log d open. A number x that should be polylog(d) is x = (log d)^p at one
d, whatever x is: its p is reported, and judged by MODERATE only.
"""

from typing import NamedTuple

import numpy as np

from ....core.checks import Scalar, positive, scalar
from .growth import noise_remainder_scale

MODERATE = 3.0
"""The largest power of log d that counts as a polylog here."""


class ParameterCondition(NamedTuple):
    """A condition, the number that the parameters reach, and whether that meets it."""

    words: str
    reached: float
    holds: bool | None


def check_parameterization(
    *,
    d: Scalar,
    N: Scalar,
    P: Scalar,
    m: Scalar,
    alpha: Scalar,
    sigma: Scalar,
    sigma0: Scalar,
    gamma: Scalar,
    lam: Scalar,
    eta: Scalar,
) -> dict[str, ParameterCondition]:
    """The conditions by name, each with what it asks for and what is reached.

    - "alpha", "sigma", "P", "m", "sigma0", "gamma": the orders of section 3.1 and Parameterization
      3.1, as powers of log d beside the power of d;
    - "lambda", "eta": in [1/poly(d), 1), and O(1): at most 1 here;
    - "N": poly(d), which every N is at one d: the exponent log N/log d is reported;
    - "noise" (proof of Lemma C.7): the largest v_ijr(0), of order sigma_0 sigma sqrt(d), is at
      least P sigma^2 sqrt(d)/alpha;
    - "T_1" (proof of Theorem C.6): lambda eta T alpha^3 (1 - gamma)^3 is at most
      P sigma^2 sqrt(d)/alpha at T = T_1 = N/(lambda eta sigma_0 sigma^3 d^1.5), up to logarithms.

    Args:
        d, N, P, m: dimension of a patch, examples, patches and filters.
        alpha, sigma, gamma: as in `data.Patches`.
        sigma0: the spread of the first weights.
        lam: the weight lambda of adversarial examples.
        eta: the learning rate.

    Example:
        from advlab.papers.cgro.theory import check_parameterization
        check_parameterization(d=1000, N=20, P=4, m=10, alpha=5.6, sigma=0.03, sigma0=0.03,
                               gamma=0.995, lam=0.5, eta=0.1)["T_1"].reached  # 0.84
    """
    dims, examples = float(positive("d", d)), float(positive("N", N))
    a, noise, start = scalar("alpha", alpha), scalar("sigma", sigma), scalar("sigma0", sigma0)
    left, share, rate = 1 - scalar("gamma", gamma), scalar("lam", lam), scalar("eta", eta)

    def power(value: float) -> float:
        return float(np.log(value) / np.log(np.log(dims)))

    orders = {
        "alpha": ("alpha = d^0.249 (log d)^p", a / dims**0.249),
        "sigma": ("sigma = d^-0.509", noise * dims**0.509),
        "P": ("P = (log d)^p", scalar("P", P)),
        "m": ("m = (log d)^p", scalar("m", m)),
        "sigma0": ("sigma_0^2 = (log d)^p/d", start**2 * dims),
        "gamma": ("1 - gamma = (log d)^-p/sqrt(d)", 1 / (left * np.sqrt(dims))),
    }
    found = {
        name: ParameterCondition(
            f"{words}, |p| <= {MODERATE:g}" if name != "sigma" else words,
            power(value),
            abs(power(value)) <= (1e-9 if name == "sigma" else MODERATE),
        )
        for name, (words, value) in orders.items()
    }
    scale = noise_remainder_scale(P, noise, dims, a)
    spread = start * noise * np.sqrt(dims)
    # lambda and eta cancel.
    pushed = examples * (a * left) ** 3 / (start * noise**3 * dims**1.5)
    return found | {
        "lambda": ParameterCondition("0 < lambda < 1", share, 0 < share < 1),
        "eta": ParameterCondition("eta <= 1", rate, 0 < rate <= 1),
        "N": ParameterCondition("N = d^q, any q", float(np.log(examples) / np.log(dims)), None),
        "noise": ParameterCondition(
            "sigma_0 sigma sqrt(d) at least P sigma^2 sqrt(d)/alpha (Lemma C.7), the ratio",
            float(spread / scale),
            bool(spread >= scale),
        ),
        "T_1": ParameterCondition(
            "lambda eta T_1 alpha^3 (1 - gamma)^3 at most P sigma^2 sqrt(d)/alpha (Theorem C.6), "
            "the ratio",
            float(pushed / scale),
            bool(pushed <= scale),
        ),
    }
