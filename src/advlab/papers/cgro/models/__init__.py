"""The networks of the CGRO paper."""

from .patch_cnn import PatchCNN as PatchCNN
from .relu_program import ReluProgram as ReluProgram
from .strided_cnn import StridedCNN as StridedCNN
