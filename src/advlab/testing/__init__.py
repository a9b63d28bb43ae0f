"""Laws for parts of your own: the same that advlab's registries are held to."""

from .law import LawBroken as LawBroken
from .threats import check_threat as check_threat
