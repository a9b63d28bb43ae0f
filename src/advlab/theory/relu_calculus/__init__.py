"""Explicit ReLU networks: squares, products, distances and indicators, weight by weight (CGRO 5).

Every part is a `Network` whose parameters are counted, with a bound on its error that is attained
or zero; `chain`, `rectified`, `beside`, `across`, `lengthened` and `reading` put parts together.
"""

from .distances import l1_distances as l1_distances
from .distances import linf_distances as linf_distances
from .distances import linf_indicators as linf_indicators
from .distances import squared_distance_error as squared_distance_error
from .distances import squared_distances as squared_distances
from .networks import Layer as Layer
from .networks import Network as Network
from .networks import across as across
from .networks import affine as affine
from .networks import beside as beside
from .networks import chain as chain
from .networks import copies as copies
from .networks import lengthened as lengthened
from .networks import reading as reading
from .networks import rectified as rectified
from .pieces import absolute as absolute
from .pieces import clip as clip
from .pieces import minimum as minimum
from .pieces import soft_indicator as soft_indicator
from .squares import least_square_depth as least_square_depth
from .squares import square_error as square_error
from .squares import square_network as square_network
