"""Exact shortcuts for the training runs of the generalization paper.

`LinearAdversarial` and `LazyAdversarial` are the objective `Adversarial()` in closed form, for
linear models and for lazy networks; `single_neuron` turns a linear network into one neuron;
`RepeatedNeurons` is a network of any width whose second layer takes few values;
`Subspace` rotates a problem into the few coordinates that its training can reach.
"""

from ....reductions import Subspace as Subspace
from .lazy_training import LazyAdversarial as LazyAdversarial
from .lazy_training import single_neuron as single_neuron
from .linear_training import LinearAdversarial as LinearAdversarial
from .repeated_neurons import RepeatedNeurons as RepeatedNeurons
