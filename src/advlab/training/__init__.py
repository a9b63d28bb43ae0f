"""The one training loop, and what it is made of."""

from .log import Log as Log
from .loop import Fit as Fit
from .loop import Moment as Moment
from .loop import fit as fit
from .objectives import MART as MART
from .objectives import TRADES as TRADES
from .objectives import Adversarial as Adversarial
from .objectives import Clean as Clean
from .objectives import Mixed as Mixed
from .objectives import Objective as Objective
from .objectives import Scene as Scene
from .optimizers import SGD as SGD
from .optimizers import Adam as Adam
from .optimizers import Optimizer as Optimizer
from .penalties import L1 as L1
from .penalties import L2 as L2
from .penalties import L2L3 as L2L3
from .penalties import Penalty as Penalty
from .projections import LayerBalls as LayerBalls
from .projections import NeuronCap as NeuronCap
from .projections import Projection as Projection
from .projections import WholeBall as WholeBall
from .schedules import Constant as Constant
from .schedules import Cosine as Cosine
from .schedules import Drops as Drops
from .schedules import Schedule as Schedule
