"""The data models of the feature purification paper."""

from .sparse_coding import Concept as Concept
from .sparse_coding import SparseCoding as SparseCoding
from .sparse_coding import SparsePoints as SparsePoints
from .sparse_coding import require_orthonormal as require_orthonormal
