"""The data models of the CGRO paper."""

from .patches import PATCH_SETTINGS as PATCH_SETTINGS
from .patches import Patches as Patches
from .patches import PatchPoints as PatchPoints
