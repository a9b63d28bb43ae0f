"""A specimen of each experiment: a table in which its claims hold, and what must break them."""

from collections.abc import Callable

from nulls import Specimen
from specimens_benign import SPECIMENS as BENIGN
from specimens_cgro import SPECIMENS as CGRO
from specimens_convergence import SPECIMENS as CONVERGENCE
from specimens_generalization import SPECIMENS as GENERALIZATION
from specimens_purification import SPECIMENS as PURIFICATION

SPECIMENS: dict[str, Callable[[], Specimen]] = {
    **BENIGN,
    **CONVERGENCE,
    **CGRO,
    **GENERALIZATION,
    **PURIFICATION,
}
