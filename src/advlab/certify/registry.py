"""The list of certificates, cheapest first."""

from ..core.registry import Registry
from .base import Certificate
from .beta_crown import BetaCrown
from .branch_and_bound import BranchAndBound
from .crown import Crown, CrownIBP
from .ibp import IBP
from .linear import LinearExact
from .lipschitz import Lipschitz
from .smoothing import Smoothing

CERTIFICATES: Registry[type[Certificate]] = Registry(
    "advlab.certificates",
    Certificate,
    {
        "linear": LinearExact,
        "ibp": IBP,
        "lipschitz": Lipschitz,
        "crown_ibp": CrownIBP,
        "crown": Crown,
        "exact": BranchAndBound,
        "beta_crown": BetaCrown,
        "smoothing": Smoothing,
    },
)
