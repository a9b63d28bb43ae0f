"""The list of certificates, cheapest first."""

from .base import Certificate
from .beta_crown import BetaCrown
from .branch_and_bound import BranchAndBound
from .crown import Crown, CrownIBP
from .ibp import IBP
from .linear import LinearExact
from .lipschitz import Lipschitz

CERTIFICATES: dict[str, type[Certificate]] = {
    "linear": LinearExact,
    "ibp": IBP,
    "lipschitz": Lipschitz,
    "crown_ibp": CrownIBP,
    "crown": Crown,
    "exact": BranchAndBound,
    "beta_crown": BetaCrown,
}
