"""The list of certificates, cheapest first."""

from ..core.registry import Registry
from .base import Certificate
from .branch_and_bound import BranchAndBound
from .crown import Crown, CrownIBP
from .ibp import IBP
from .linear import LinearExact
from .lipschitz import Lipschitz

CERTIFICATES: Registry[type[Certificate]] = Registry(
    "advlab.certificates",
    Certificate,
    {
        "linear": LinearExact,
        "lipschitz": Lipschitz,
        "ibp": IBP,
        "crown_ibp": CrownIBP,
        "crown": Crown,
        "exact": BranchAndBound,
    },
)
