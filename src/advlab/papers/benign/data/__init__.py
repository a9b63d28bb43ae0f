"""The data models of the benign overfitting paper."""

from .mixture import Clusters as Clusters
from .mixture import NoisyMixture as NoisyMixture
from .mixture import Quartic as Quartic
from .mixture import Scaled as Scaled
from .unit_laws import UnitLaw as UnitLaw
