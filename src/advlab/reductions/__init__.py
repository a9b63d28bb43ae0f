"""Exact shortcuts that two papers share: the same training run in fewer numbers.

- `bartlett`: Gaussian points in the fewest coordinates that keep their inner products.
- `Layers`: R two-layer networks as tensors, read from a `TwoLayer` or a stack of them.
- `gram_pgd`: PGD on two-layer networks through the Gram matrix of their weights; gives the
  `WorstPoint` of each row.
- `Step`: one step of gradient descent on two-layer networks, written out without autograd;
  `score_of` gives the loss and slope it needs, `trained` the names of what is trained.
- `Subspace`: a problem rotated into the few coordinates that its training can reach.

Each gives the numbers of the plain way (attack and autograd in all dimensions) up to rounding, or,
for `bartlett`, the same law.
"""

from .bartlett import bartlett as bartlett
from .gram import Layers as Layers
from .gram import Score as Score
from .gram import WorstPoint as WorstPoint
from .gram import gram_pgd as gram_pgd
from .step import Step as Step
from .step import score_of as score_of
from .step import trained as trained
from .subspace import Subspace as Subspace
