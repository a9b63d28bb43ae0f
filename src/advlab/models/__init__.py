"""Networks: one architecture per file, and stacks of replicates of any of them."""

from .activations import ACTIVATIONS as ACTIVATIONS
from .activations import SHAPES as SHAPES
from .activations import Activation as Activation
from .activations import leaky_relu as leaky_relu
from .activations import smoothed_leaky_relu as smoothed_leaky_relu
from .deep_relu import DeepReLU as DeepReLU
from .lazy import LazyNet as LazyNet
from .linear import Linear as Linear
from .normalised import Normalised as Normalised
from .patch_cnn import PatchCNN as PatchCNN
from .relu_program import ReluProgram as ReluProgram
from .stack import Stack as Stack
from .two_layer import TwoLayer as TwoLayer
