"""The data models of the convergence paper."""

from .sphere import Antipodes as Antipodes
from .sphere import Sphere as Sphere
from .sphere import SpherePoints as SpherePoints
from .sphere import lift as lift
