"""Sources of data, one a file: laws to draw from, published sets, a user's own arrays."""

from . import arrays as arrays
from . import cifar10 as cifar10
from . import mnist as mnist
from .arrays import Arrays as Arrays
from .arrays import from_arrays as from_arrays
from .base import DataModel as DataModel
from .directory import SETS as SETS
from .directory import data_root as data_root
from .directory import fetch as fetch
from .mixture import Clusters as Clusters
from .mixture import Mixture as Mixture
from .mixture import Quartic as Quartic
from .mixture import Scaled as Scaled
from .patches import PATCH_SETTINGS as PATCH_SETTINGS
from .patches import Patches as Patches
from .patches import PatchPoints as PatchPoints
from .regression import AR1 as AR1
from .regression import LinearModel as LinearModel
from .regression import Regression as Regression
from .regression import Sparse as Sparse
from .regression import symmetrise as symmetrise
from .shattering import ClusterPoints as ClusterPoints
from .shattering import Shattering as Shattering
from .sparse_coding import Concept as Concept
from .sparse_coding import SparseCoding as SparseCoding
from .sparse_coding import SparsePoints as SparsePoints
from .sparse_coding import require_orthonormal as require_orthonormal
from .sphere import Antipodes as Antipodes
from .sphere import Sphere as Sphere
from .sphere import SpherePoints as SpherePoints
from .sphere import lift as lift

DATA: dict[str, type[DataModel]] = {
    "linear": LinearModel,
    "mixture": Mixture,
    "sphere": Sphere,
    "antipodes": Antipodes,
    "shattering": Shattering,
    "patches": Patches,
    "sparse_coding": SparseCoding,
}
