"""The explicit CGRO classifier f_S as a ReLU network (equation (C) and Theorem 5.2).

A clean classifier z, clipped to [-1, 1], and soft indicators I_i of the balls around the training
points, which are 1 within delta of x_i and 0 from separation - delta on:

    paper:  z + sum_i mul(y_i - z, I_i)
    free:   z + 2 min(1, sum_{y_i = 1} I_i) - 2 min(1, sum_{y_i = -1} I_i)

In a ball of radius delta around a training point its own indicator is 1 and those of the other
label are 0, so y f >= 1 there, also where balls of one label overlap. At a point of the support
indicators of the other label are 0 as well: f has the sign of z or is more on its side. For the
products this is exact at any depth: mul(x, 1) = x and mul(x, 0) = 0, and mul is never negative on
[0, 1]^2. Between delta and separation - delta of a training point the two assemblies differ.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ....core.checks import Array, Scalar, chosen, length, points_of, signs
from ....core.errors import AdvlabError
from ....theory.relu_calculus import (
    Network,
    across,
    affine,
    beside,
    chain,
    clip,
    lengthened,
    linf_indicators,
    reading,
    rectified,
    soft_indicator,
    squared_distances,
)
from ....theory.relu_calculus.distances import STYLES
from ....theory.separation import require_separated
from .feasibility import Feasible, feasible
from .products import product_network

ASSEMBLIES = ("paper", "free")


@dataclass(frozen=True)
class CGROPlan:
    """f_S as explicit layers. Where z is a torch module, its value is the last input."""

    network: Network
    squares: Feasible | None
    """Depth and error of the squared distances; None for linf, which is exact."""

    @property
    def parameters(self) -> int:
        """Connections and biases of the layers (those of a torch module come on top)."""
        return self.network.parameters


def cgro_network(
    points: Any,
    labels: Any,
    clean: Network | Callable[..., Any],
    delta: Scalar,
    separation: Scalar,
    depth: int | None = None,
    norm: str = "l2",
    assembly: str = "paper",
    *,
    distances: str = "shared",
    product_depth: int = 4,
    box: tuple[Scalar, Scalar] = (0.0, 1.0),
) -> Any:
    """f_S as a `ReluProgram`, a torch module: (batch, D) to (batch,). Arguments as for `cgro_plan`.

    `parameters_counted` of the result is the number of weights and biases of its layers.

    Example:
        import numpy as np
        from advlab.papers.cgro.theory import cgro_network
        from advlab.theory import relu_calculus
        clean = relu_calculus.affine(np.eye(4)[-1:], -0.5)
        f = cgro_network(points, labels, clean, delta=0.1, separation=0.25)
    """
    from ..models import ReluProgram

    plan = cgro_plan(points, labels, clean, delta, separation, depth, norm, assembly,
                     distances=distances, product_depth=product_depth, box=box)  # fmt: skip
    inner: Any = None if isinstance(clean, Network) else clean
    return ReluProgram([(layer.weight, layer.bias) for layer in plan.network.layers], inner)


def cgro_plan(
    points: Any,
    labels: Any,
    clean: Network | Callable[..., Any],
    delta: Scalar,
    separation: Scalar,
    depth: int | None = None,
    norm: str = "l2",
    assembly: str = "paper",
    *,
    distances: str = "shared",
    product_depth: int = 4,
    box: tuple[Scalar, Scalar] = (0.0, 1.0),
) -> CGROPlan:
    """The layers of f_S.

    Args:
        points: training inputs (N, D).
        labels: +1 or -1 for each.
        clean: the clean classifier z, a network of the calculus or a torch module.
        delta: the radius of the balls.
        separation: the least distance of the two classes in the population, not in the sample: the
            sample's may be larger, and wrong for new points.
        depth: k of the square networks in l2, by default the least whose error fills at most half
            of its room; linf has none.
        norm: "l2" or "linf".
        assembly: "paper", with products, or "free" of them.
        distances: squares that serve all points ("shared") or one set each ("paper"), in l2.
        product_depth: k of the squares in the products.
        box: the range of the coordinates of the support; inputs may leave it by delta.
    """
    rows, radius = points_of(points), length("delta", delta)
    y = signs(labels, len(rows))
    apart = _separation(rows, y, radius, separation, norm)
    chosen("assembly", assembly, ASSEMBLIES)
    chosen("distances", distances, STYLES)
    ends = _box(rows, box)
    if norm == "l2":
        squares = feasible(rows.shape[1], radius, apart, depth, distances, ends)
        indicators = _l2_indicators(rows, squares)
    else:
        # These are indicators once they are rectified; those of l2 are already.
        squares, indicators = None, linf_indicators(rows, radius, apart - 2 * radius)
    joined = _joined(indicators, y, clean, norm, assembly)
    end = _paper(y, product_depth) if assembly == "paper" else _free()
    return CGROPlan(rectified(joined, end), squares)


def _l2_indicators(rows: Array, squares: Feasible) -> Network:
    low, width = squares.low, squares.width
    found = squared_distances(rows, squares.depth, low, width, squares.style)
    return rectified(found, across(soft_indicator(squares.inside, squares.outside), len(rows)))


def _joined(indicators: Network, y: Array, clean: Any, norm: str, assembly: str) -> Network:
    """What the assembly needs of the indicators, and 1 + clip(z): all to be rectified."""
    if assembly == "free":
        # relu(1 - sum I) for either label.
        sums = sparse.csr_array(np.stack([y > 0, y < 0]).astype(np.float64))
        join = chain if norm == "l2" else rectified
        indicators = join(indicators, affine(-sums, 1.0))
    inputs = indicators.inputs
    if isinstance(clean, Network):
        if (clean.inputs, clean.outputs) != (inputs, 1):
            shape = f"{clean.inputs} inputs and {clean.outputs} outputs"
            raise AdvlabError(f"a clean network with {inputs} inputs and one output", shape)
    else:
        indicators = reading(indicators, np.arange(inputs), inputs + 1)
        clean = reading(affine(np.ones((1, 1))), [inputs], inputs + 1)
    score = chain(clean, clip(-1.0, 1.0), affine(np.ones((1, 1)), 1.0))
    depth = max(indicators.depth, score.depth)
    return beside(lengthened(indicators, depth), lengthened(score, depth))


def _free() -> Network:
    """From (relu(1 - sum I) of label 1, of label -1, 1 + z) to z + 2 min(1, .) - 2 min(1, .)."""
    return affine(np.array([[-2.0, 2.0, 1.0]]), -1.0)


def _paper(y: Array, depth: int) -> Network:
    """From (I_1, ..., I_n, c = 1 + z) to z + sum_i y_i 2 mul(|y_i - z|/2, I_i)."""
    n = len(y)
    # |y - z|/2 is 1 - c/2 for label 1 and c/2 for label -1; each goes with its indicator.
    pairs = sparse.csr_array(
        (
            np.r_[-y / 2, np.ones(n)],
            (np.r_[np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2)], np.r_[np.full(n, n), :n]),
        ),
        shape=(2 * n, n + 1),
    )
    shift = np.ravel(np.stack([(y + 1) / 2, np.zeros(n)], axis=1))
    products = chain(affine(pairs, shift), across(product_network(depth, signed=False), n))
    carried = lengthened(reading(affine(np.ones((1, 1))), [n], n + 1), products.depth)
    return chain(beside(products, carried), affine(np.r_[2 * y, 1.0][None], -1.0))


def _separation(rows: Array, y: Array, delta: float, separation: Scalar, norm: str) -> float:
    """The separation, refused if balls overlap or the points contradict it."""
    found = require_separated(rows, y, delta, norm)
    apart = length("separation", separation)
    if apart <= 2 * delta:
        raise AdvlabError(f"a separation above 2 delta = {2 * delta:.6g}", apart)
    if found.distance < apart * (1 - 1e-9):
        raise AdvlabError(
            f"points of different labels at least the separation {apart:.6g} apart in {norm}",
            f"points {found.pair} at distance {found.distance:.6g}",
            "state a lower bound of the distance of the classes",
        )
    return apart


def _box(rows: Array, box: tuple[Scalar, Scalar]) -> tuple[float, float]:
    low, high = float(box[0]), float(box[1])
    if not (low <= rows.min() and rows.max() <= high):
        raise AdvlabError(
            f"points in the box from {low:.6g} to {high:.6g}",
            f"coordinates from {rows.min():.6g} to {rows.max():.6g}",
            "state the box of the support",
        )
    return low, high
