"""Lottery tickets: which neurons will win which atoms (Definitions B.1 and B.3).

Sets are flags over (neuron, atom), or over neurons. Arguments are the same throughout: A = W M, the
coordinates of the neurons; `norm`, their lengths; w, the w* of the labels; `rules`, the constants;
k, the sparsity; `bias`, the b of the network; and `sw`, the scale sigma_w of the analysis: sigma_0
at the start, then tied to the bias.
"""

import math

from jaxtyping import Bool, Float
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from ....core.config import Config
from ....core.errors import AdvlabError
from .dense_mixture import top

Tickets = Bool[Tensor, "*R m D"]
Chosen = Bool[Tensor, "*R m"]


class TicketRules(Config):
    """The constants of Definitions B.1 and B.3: m = d^(1 + c0), c1 = 2 + 2(1 - gamma) c0."""

    d: PositiveInt
    c0: float = Field(gt=0.0)
    gamma: float = Field(default=0.05, gt=0.0, lt=1.0)
    xi2: PositiveFloat = 1.0
    """Xi2 = d^(2 gamma c0), close to 1 at the sizes of a lab."""
    few: PositiveInt = 10
    """What O(1) atoms means."""
    plenty: PositiveFloat = 0.25
    """What Omega(d / log d) atoms means, as a factor of d / log d."""

    @classmethod
    def of(cls, d: int, width: int, gamma: float = 0.05) -> "TicketRules":
        """The constants of a network with this many neurons in d dimensions."""
        if not width > d > 2:
            raise AdvlabError("more neurons than dimensions, and d > 2", f"m {width}, d {d}")
        return cls(d=d, c0=math.log(width) / math.log(d) - 1, gamma=gamma)

    @property
    def c1(self) -> float:
        """2 + 2(1 - gamma) c0"""
        return 2 + 2 * (1 - self.gamma) * self.c0

    @property
    def c2(self) -> float:
        """gamma c0"""
        return self.gamma * self.c0

    @property
    def log_d(self) -> float:
        """log d"""
        return math.log(self.d)

    @property
    def high(self) -> float:
        """(c1 + c2) log d, what A^2 of a sure ticket exceeds in units of sw^2."""
        return (self.c1 + self.c2) * self.log_d

    @property
    def low(self) -> float:
        """(c1 - c2) log d, what A^2 of a potential ticket exceeds."""
        return (self.c1 - self.c2) * self.log_d

    def scale(self, bias: float) -> float:
        """sigma_w with b = sqrt(c1) sigma_w sqrt(log d)."""
        return bias / math.sqrt(self.c1 * self.log_d)

    def beta(self, k: float) -> float:
        """1 / (sqrt(k) Xi2^10)"""
        return 1 / (math.sqrt(k) * self.xi2**10)


def potential(A: Float[Tensor, "*R m D"], rules: TicketRules, sw: float) -> Tickets:
    """S_pot: A_ij^2 >= (c1 - c2) sw^2 log d."""
    return rules.low * sw**2 <= A**2


def sure(
    A: Float[Tensor, "*R m D"], w: Float[Tensor, "*R D"], rules: TicketRules, sw: float
) -> Tickets:
    """S_sure: A_ij^2 >= (c1 + c2) sw^2 log d with the sign of w*_j, and i in no other S_pot."""
    alone = potential(A, rules, sw).sum(-1, keepdim=True) == 1
    return (rules.high * sw**2 <= A**2) & alone & _signed(A, w)


def sure_plus(
    A: Float[Tensor, "*R m D"], w: Float[Tensor, "*R D"], k: float, bias: float
) -> Tickets:
    """S_sure+: A_ij^2 >= 4 k b^2 with the sign of w*_j."""
    return (4 * k * bias**2 <= A**2) & _signed(A, w)


def potential_plus(
    A: Float[Tensor, "*R m D"], rules: TicketRules, k: float, bias: float
) -> Tickets:
    """S_pot+: |A_ij| >= k b / (d beta)."""
    return A.abs() >= k * bias / (rules.d * rules.beta(k))


def ordinary(
    A: Float[Tensor, "*R m D"], norm: Float[Tensor, "*R m"], rules: TicketRules, sw: float
) -> Chosen:
    """S_ept: |w_i|^2 <= 2 sw^2 d, few tickets, not many large and enough small coordinates."""
    d, log_d = rules.d, rules.log_d
    tickets = potential(A, rules, sw).sum(-1)
    large = (2 * sw**2 * math.sqrt(log_d) <= A**2).sum(-1)
    small = (A.abs() <= sw / log_d).sum(-1)
    return (
        (norm**2 <= 2 * sw**2 * d)
        & (tickets <= rules.few)
        & (large <= 2 ** -math.sqrt(log_d) * d)
        & (small >= rules.plenty * d / log_d)
    )


def ordinary_plus(
    A: Float[Tensor, "*R m D"], norm: Float[Tensor, "*R m"], rules: TicketRules, sw: float
) -> Chosen:
    """S_ept+: |w_i|^2 <= sw^2 d / log^2 d and few coordinates of sw / log d or more."""
    short = norm**2 <= sw**2 * rules.d / rules.log_d**2
    return short & ((A.abs() >= sw / rules.log_d).sum(-1) <= rules.few)


def ordinary_twice_plus(
    norm: Float[Tensor, "*R m"], rules: TicketRules, k: float, sw: float
) -> Chosen:
    """S_ept++: |w_i| <= sw / beta."""
    return norm <= sw / rules.beta(k)


def share_within(inner: Tickets, outer: Tickets) -> Float[Tensor, "*R"]:
    """The share of `inner` that lies in `outer`, NaN for an empty one.

    Persistence: S_sure(0) within S_sure(t), and S_pot(t) within S_pot(0), until T_b.
    """
    return (inner & outer).sum(dim=(-2, -1)) / inner.sum(dim=(-2, -1)).double()


def tickets_kept(
    A: Float[Tensor, "*R m D"], end: Float[Tensor, "*R m D"], keep: Chosen
) -> Float[Tensor, "*R"]:
    """The share of the neurons in `keep` whose top atom is already that of the end."""
    same = (top(A) == top(end)) & keep
    return same.sum(-1) / keep.sum(-1).double()


def _signed(A: Float[Tensor, "*R m D"], w: Float[Tensor, "*R D"]) -> Tickets:
    # sign(0) = +1, as everywhere in the paper.
    return (A >= 0) == (w >= 0)[..., None, :]
