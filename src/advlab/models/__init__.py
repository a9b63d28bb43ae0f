"""Networks: one architecture per file, and stacks of replicates of any of them."""

from .activations import ACTIVATIONS as ACTIVATIONS
from .activations import SHAPES as SHAPES
from .activations import Activation as Activation
from .activations import leaky_relu as leaky_relu
from .activations import smoothed_leaky_relu as smoothed_leaky_relu
from .array_function import ArrayFunction as ArrayFunction
from .estimator import Estimator as Estimator
from .labels_only import LabelsOnly as LabelsOnly
from .linear import Linear as Linear
from .normalised import Normalised as Normalised
from .onnx_file import onnx_model as onnx_model
from .resnet9 import ResNet9 as ResNet9
from .sandboxed import SandboxedModel as SandboxedModel
from .small_cnn import SmallCNN as SmallCNN
from .stack import Stack as Stack
from .two_layer import TwoLayer as TwoLayer
