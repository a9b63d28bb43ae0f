"""The networks of the feature purification paper."""

from .large_filter_cnn import LargeFilterCNN as LargeFilterCNN
from .oracles import PolynomialOracle as PolynomialOracle
from .oracles import ReLUOracle as ReLUOracle
from .oracles import ThresholdedOracle as ThresholdedOracle
from .oracles import linear_oracle as linear_oracle
from .oracles import oracle_bias as oracle_bias
from .oracles import symmetric_oracle as symmetric_oracle
from .symmetric_relu import BiasGrowth as BiasGrowth
from .symmetric_relu import SymmetricReLU as SymmetricReLU
from .symmetric_relu import pure_features as pure_features
from .tangent_relu import TangentReLU as TangentReLU
