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
from .resnet9 import ResNet9 as ResNet9
from .small_cnn import SmallCNN as SmallCNN
from .sparse_oracles import PolynomialOracle as PolynomialOracle
from .sparse_oracles import ReLUOracle as ReLUOracle
from .sparse_oracles import ThresholdedOracle as ThresholdedOracle
from .sparse_oracles import linear_oracle as linear_oracle
from .sparse_oracles import oracle_bias as oracle_bias
from .sparse_oracles import symmetric_oracle as symmetric_oracle
from .stack import Stack as Stack
from .symmetric_relu import BiasGrowth as BiasGrowth
from .symmetric_relu import SymmetricReLU as SymmetricReLU
from .tangent_relu import TangentReLU as TangentReLU
from .two_layer import TwoLayer as TwoLayer
