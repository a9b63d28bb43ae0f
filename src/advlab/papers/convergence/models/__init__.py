"""The networks of the convergence paper."""

from .deep_relu import DeepReLU as DeepReLU
