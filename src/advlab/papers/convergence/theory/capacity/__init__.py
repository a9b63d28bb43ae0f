"""How large a network must be to fit n points robustly (section 6 of the convergence paper).

Shattering by two disjoint balls (Theorem 6.1), and explicit networks that interpolate.
"""

from .balls import Balls as Balls
from .balls import shatter as shatter
from .robust_l2 import RobustL2 as RobustL2
from .robust_l2 import robust_l2 as robust_l2
from .robust_linf import robust_linf as robust_linf
from .shattering import cluster_points as cluster_points
from .shattering import gamma as gamma
from .shattering import tau_interval as tau_interval
from .spline import RidgeSpline as RidgeSpline
from .spline import plain_interpolator as plain_interpolator
