"""Threat sets: what an adversary may do to an input. All geometry lives in this room."""

from .ball import Ball as Ball
from .base import Norm as Norm
from .base import Threat as Threat
from .cap import Cap as Cap
