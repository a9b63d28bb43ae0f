"""Lines around scalar functions, against dense grids; what is said of the functions is true."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab.certify._graph import scalar_functions as scalar
from advlab.certify._graph.lines import image, lines

FUNCTIONS = {
    f.name + str(i): f
    for i, f in enumerate(
        [f for f in vars(scalar).values() if isinstance(f, scalar.ScalarFunction)]
        + [scalar.softplus(1.0, 20.0), scalar.softplus(3.0, 2.0), scalar.power(2), scalar.power(3)]
        + [scalar.elu(1.0, 1.0, 1.0), scalar.elu(1.6733, 1.0507, 1.0), scalar.elu(0.5, 1.0, 2.0)]
    )
}


def inside(f: scalar.ScalarFunction, ends: torch.Tensor) -> torch.Tensor:
    """Ends moved to where the function has values, on one side of a pole."""
    ends = ends.clamp(-30, 30) if f.name in ("exp", "expm1") else ends
    if f.pole is None and math.isinf(f.domain[0]):
        return ends
    return ends.abs() + (f.domain[0] if math.isfinite(f.domain[0]) else 0.0) + 1e-3


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(FUNCTIONS)),
    middle=st.floats(-6, 6),
    width=st.sampled_from([0.0, 1e-9, 1e-4, 0.1, 1.0, 4.0, 30.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_lines_and_images_hold_the_function(name, middle, width, dtype):
    f = FUNCTIONS[name]
    ends = inside(f, torch.tensor([middle - width / 2, middle + width / 2], dtype=dtype))
    low, high = ends.min()[None], ends.max()[None]
    z = low + (high - low) * torch.linspace(0, 1, 2001, dtype=dtype)
    z = z.clamp(low, high)
    value, found, box = f.value(z), lines(f, (low, high)), image(f, (low, high))
    assert (found.upper * z + found.upper_intercept >= value).all()
    assert (found.lower * z + found.lower_intercept <= value).all()
    assert (value >= box[0]).all()
    assert (value <= box[1]).all()
    # And tight: the image is the range, up to rounding and bisection.
    slack = 1e-5 * (1 + value.abs().max()) + 1e-7 * float(high - low) ** 2 + 2 * f.error
    assert box[0] >= value.min() - slack
    assert box[1] <= value.max() + slack


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_and_curvatures_are_true(name):
    f = FUNCTIONS[name]
    z = inside(f, torch.linspace(-8, 8, 801, dtype=torch.float64) + 1e-4).unique()
    z = z[(z - (f.pole or 0.0)).abs() > 0.05] if math.isfinite(f.domain[0]) or f.pole == 0 else z
    h = 1e-5
    slope = (f.value(z + h) - f.value(z - h)) / (2 * h)
    away = torch.stack([(z - b).abs() > 1e-3 for b in (*f.breaks, 1e9)]).all(0)
    away = away & (z < 2 / 3) if f.error > 1e-6 else away  # PyTorch's softplus leaves its curve
    torch.testing.assert_close(f.derivative(z)[away], slope[away], rtol=1e-5, atol=1e-7)
    assert (f.derivative(z).abs() <= f.lipschitz * (1 + 1e-6)).all()
    turn = f.derivative(z + h) - f.derivative(z - h)
    edges = (-math.inf, *f.breaks, math.inf)
    for k, curvature in enumerate(f.curvature):
        here = away & (z > edges[k]) & (z < edges[k + 1])
        if curvature == 0:
            assert (turn[here].abs() < 1e-12).all()
        assert (curvature * turn[here] >= -1e-12).all()
    if f.monotone:
        assert (f.monotone * f.derivative(z) >= 0).all()
    assert (f.value(z) >= f.range[0]).all()
    assert (f.value(z) <= f.range[1]).all()


@pytest.mark.parametrize("name", ["sigmoid0", "tanh1"])
def test_lines_touch_the_envelope_of_s_shaped_functions(name):
    """At the middle no line above f is lower than its concave envelope, here by convex hull."""
    f = FUNCTIONS[name]
    for low, high in ((-4.0, 1.0), (-1.0, 4.0), (-3.0, 3.0), (-5.0, 0.2), (0.5, 3.0), (-3.0, -1.0)):
        z = torch.linspace(low, high, 4001, dtype=torch.float64)
        middle, value = (low + high) / 2, f.value(z)
        left, right = z < middle, z > middle
        rise = (value[right] - value[left][:, None]) / (z[right] - z[left][:, None])
        hull = (value[left][:, None] + rise * (middle - z[left][:, None])).max()
        hull = torch.maximum(hull, f.value(torch.tensor(middle, dtype=torch.float64)))
        ends = (torch.tensor([low]).double(), torch.tensor([high]).double())
        found = lines(f, ends)
        height = found.upper * middle + found.upper_intercept
        assert float(height) == pytest.approx(float(hull), abs=2e-4)
        assert float(height) >= float(hull) - 1e-9
