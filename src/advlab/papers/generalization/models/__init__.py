"""The networks of the generalization paper."""

from .lazy_net import LazyNet as LazyNet
