"""What is proved, computable without training: numpy and scipy in float64, never torch."""

from . import capacity as capacity
from . import cgro as cgro
from . import linear as linear
from . import mixture as mixture
from . import ntk as ntk
from . import relu_calculus as relu_calculus
from . import sparse as sparse
