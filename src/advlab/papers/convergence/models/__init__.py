"""The networks of the convergence paper."""

from .conv_relu import ConvReLU as ConvReLU
from .deep_relu import DeepReLU as DeepReLU
