"""Exact shortcuts for the training runs of the benign overfitting paper.

`reduce` picks the one that fits a model, its data and an attack, or says why there is none.
`mixture_law` draws a problem in the coordinates that training can reach; `TwoLayerAdversarial` and
`attacked` train and attack there without autograd; `RandomStarts` has the random starts of PGD.
"""

from .random_starts import RandomStarts as RandomStarts
from .random_starts import SpanBall as SpanBall
from .reduced import Reduced as Reduced
from .reduced import reduce as reduce
from .two_layer_training import TwoLayerAdversarial as TwoLayerAdversarial
from .two_layer_training import attacked as attacked
