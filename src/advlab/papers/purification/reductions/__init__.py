"""Exact shortcuts for the training runs of the feature purification paper."""

from .sparse_products import sparse_product as sparse_product
from .symmetric_training import SymmetricAdversarial as SymmetricAdversarial
from .symmetric_training import SymmetricLoss as SymmetricLoss
