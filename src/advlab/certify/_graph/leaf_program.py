"""A part of the threat set in which all signs are decided: a linear function over a convex set."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from .backward import LinearBound, NonlinearBound, propagate_backward, unit_vectors
from .convex_program import clarabel_solution, set_constraints
from .one_hidden_layer import ExampleSet

if TYPE_CHECKING:
    from .split_bounds import SplitBounds, SplitPart, _Layer


def leaf_bound(
    bounds: "SplitBounds", part: "SplitPart", layers: "dict[int, _Layer]", i: int
) -> tuple[float, Tensor | None]:
    """The largest margin of the part by weak duality, whatever the solver did, and a point of the
    threat set that may have it; -inf if the multipliers prove that the part is empty, inf where the
    set is of another kind.

    Args:
        bounds: The network and the sets.
        part: The part, no sign of which is open.
        layers: All ReLU layers of the batch that the part is in.
        i: The part's place in the batch.
    """
    center = bounds.sets.center[part.row : part.row + 1]
    one = _example_set(bounds, center)
    if one is None:
        return float("inf"), None
    g, constant, slack = _linear(bounds, layers, i, bounds.graph.output, part.a[None])
    rows, shift, sides = [], [], []
    for k, signs in part.signs.items():
        if not signs:
            continue
        place = bounds.graph.nodes[k].inputs[0]
        numbers = torch.tensor(sorted(signs), device=center.device)
        units = unit_vectors(numbers, bounds.graph.nodes[place].shape, center)
        w, b, _ = _linear(bounds, layers, i, place, units)
        rows.append(w)
        shift.append(b)
        sides.append([float(signs[n]) for n in sorted(signs)])
    w, b, side = np.concatenate(rows), np.concatenate(shift), np.concatenate(sides)
    of_set, room, cones = set_constraints(one, w.shape[1], 0)
    solution = clarabel_solution(
        -g[0], np.vstack([-side[:, None] * w, of_set]),
        np.concatenate([side * (w @ one.center + b), room]), len(w), cones,
    )  # fmt: skip
    factors = np.nan_to_num(np.maximum(np.asarray(solution.z)[: len(w)], 0)) * side
    if "Infeasible" in str(solution.status):
        most = one.support(factors @ w) + float(factors @ b)
        if most < -1e-9 * float(np.abs(factors) @ np.abs(w).sum(1)):
            return -float("inf"), None
    bound = one.support(g[0] + factors @ w) + float(constant[0] + factors @ b) + float(slack[0])
    point = one.project(one.center + np.nan_to_num(np.asarray(solution.x)))
    return bound, torch.as_tensor(point, dtype=center.dtype, device=center.device)


def _example_set(bounds: "SplitBounds", center: Tensor) -> ExampleSet | None:
    threat, wide = bounds.sets.threat, center.double()
    parts = threat.box_and_ball(wide)
    if parts is None:
        return None
    interval, radius = parts
    ends = None if interval is None else tuple(e.flatten().cpu().numpy() for e in interval)
    return ExampleSet(threat, wide.flatten().cpu().numpy(), ends, radius)  # type: ignore[arg-type]


def _linear(
    bounds: "SplitBounds", layers: "dict[int, _Layer]", i: int, target: int, a: Tensor
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """<a, value> as a function of the input where all signs are decided, and its rounding."""
    rates = {k: layer.rates(i) for k, layer in layers.items()}

    def relaxation(k: int, here: Tensor, rows: Tensor) -> NonlinearBound:
        zero = here.new_zeros(len(here))
        return NonlinearBound(zero, zero, (here * rates[k],))

    rows = torch.zeros(1, dtype=torch.long, device=a.device)
    back = propagate_backward(bounds.graph, LinearBound.of(target, a), rows, relaxation)
    w = back.coefficients.get(0, a.new_zeros(len(a), *bounds.sets.center.shape[1:]))
    unit = torch.finfo(a.dtype).eps * bounds.graph.rounding
    slack = unit * (back.magnitude + w.flatten(1).abs() @ bounds.sets.high.flatten(1).abs().amax(0))
    return tuple(value.double().cpu().numpy() for value in (w.flatten(1), back.constant, slack))  # type: ignore[return-value]
