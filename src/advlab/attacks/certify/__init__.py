"""Upper bounds: what no attack can do to a network, and a registry of the ways to show it."""

from .base import Certificate as Certificate
from .crown import Crown as Crown
from .crown import CrownIBP as CrownIBP
from .exact import BranchAndBound as BranchAndBound
from .exact import Solved as Solved
from .ibp import IBP as IBP
from .linear import LinearExact as LinearExact
from .lipschitz import Lipschitz as Lipschitz
from .registry import CERTIFICATES as CERTIFICATES
from .smooth import Smoothed as Smoothed
from .smooth import Vote as Vote
from .together import Certified as Certified
from .together import certify as certify
