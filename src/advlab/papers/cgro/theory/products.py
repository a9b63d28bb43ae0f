"""Products by Yarotsky's squares (CGRO, Lemma D.3): O(k) parameters for an error of order 4^-k.

mul(x, y) = 2 B^2 [q(|x + y|/2B) - q(|x|/2B) - q(|y|/2B)] on [-B, B]^2. Errors of squares are
one-sided, so that of the product is at most 4 B^2 2^{-2k-2} (the triangle inequality would say 6),
and this is attained. mul is 0 on both axes. It is also exact where |y| = B and x has the sign of y:
then the error of the first square is that of the second, half a unit on, and the third has none.
"""

import numpy as np
from scipy import sparse

from ....core.checks import Scalar, length, whole
from ....theory.relu_calculus.networks import Network, across, affine, chain
from ....theory.relu_calculus.pieces import absolute
from ....theory.relu_calculus.squares import square_error, square_network


def product_error(depth: int, bound: Scalar = 1.0) -> float:
    """4 B^2 2^{-2k-2}: how far mul is from the product at most.

    Args:
        depth: k of the square networks.
        bound: B; factors lie in [-B, B].
    """
    return 4 * length("bound", bound) ** 2 * square_error(depth)


def product_network(depth: int, bound: Scalar = 1.0, *, signed: bool = True) -> Network:
    """mul on [-B, B]^2 with 60k + 3 parameters; its values on [0, B]^2 are in [0, B^2].

    Args:
        depth: k of the square networks.
        bound: B; factors lie in [-B, B].
        signed: whether factors may be negative. On [0, B]^2 alone no absolute values are needed:
            60k - 19 parameters.
    """
    top, k = length("bound", bound), whole("depth", depth, 1)
    mix = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]) / (2 * top)
    halves = affine(sparse.csr_array(mix))
    squares = across(square_network(k), 3)
    combine = affine(2 * top**2 * np.array([[1.0, -1.0, -1.0]]))
    middle = (across(absolute(), 3),) if signed else ()
    return chain(halves, *middle, squares, combine)
