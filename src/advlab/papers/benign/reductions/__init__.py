"""Exact shortcuts for the training runs of the benign overfitting paper."""

from .two_layer_training import TwoLayerAdversarial as TwoLayerAdversarial
from .two_layer_training import attacked as attacked
