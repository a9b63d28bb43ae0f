"""Exact shortcuts for the training runs of the benign overfitting paper.

`mixture_law` draws a problem in the coordinates that training can reach; `TwoLayerAdversarial` and
`attacked` train and attack there without autograd.
"""

from .two_layer_training import TwoLayerAdversarial as TwoLayerAdversarial
from .two_layer_training import attacked as attacked
