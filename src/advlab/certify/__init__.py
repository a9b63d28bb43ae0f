"""Upper bounds: what no attack can do to a network, and a registry of the ways to show it."""

from .base import Certificate as Certificate
from .beta_crown import BetaCrown as BetaCrown
from .beta_crown import Searched as Searched
from .branch_and_bound import BranchAndBound as BranchAndBound
from .branch_and_bound import Solved as Solved
from .cascade import Certified as Certified
from .cascade import Tried as Tried
from .cascade import certify as certify
from .cascade import usual_certificates as usual_certificates
from .crown import Crown as Crown
from .crown import CrownIBP as CrownIBP
from .ibp import IBP as IBP
from .linear import LinearExact as LinearExact
from .lipschitz import Lipschitz as Lipschitz
from .randomized_smoothing import Smoothed as Smoothed
from .randomized_smoothing import Vote as Vote
from .registry import CERTIFICATES as CERTIFICATES
from .smoothing import Smoothing as Smoothing
