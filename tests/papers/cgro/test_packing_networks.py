"""Networks on the points of Theorem 5.3: data, attacks and radii against answers by hand."""

import numpy as np
import polars as pl
import pytest
import torch
from scipy.spatial.distance import cdist
from torch import nn

from advlab.core.randomness import generators
from advlab.papers.cgro.experiments import distance_to_explicit, trained_lower_bound
from advlab.papers.cgro.experiments._parts import packing_runs
from advlab.threats import Ball


def drawn(d: int = 4, delta: float = 0.3, height: float = 0.2, seeds: int = 3):
    return packing_runs.lifted_packings(d, delta, height, generators("test", d, seeds=range(seeds)))


class Affine(nn.Module):
    """w'x + b as a stack of equal networks."""

    def __init__(self, weight: torch.Tensor, bias: float):
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(torch.tensor(bias).double())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight + self.bias


@pytest.mark.parametrize(("d", "delta", "side"), [(4, 0.3, 2), (3, 0.245, 3)])
def test_points_are_a_lifted_packing_in_a_centred_cube(d, delta, side):
    points = drawn(d, delta, 0.2)
    assert points.x.shape == (3, side ** (d - 1), d)
    assert torch.allclose(points.x[..., -1], 0.2 * points.y)
    assert set(np.unique(points.x[..., :-1])) == set(np.linspace(-0.5, 0.5, side))
    for x, y in zip(points.x, points.y, strict=True):
        assert len(torch.unique(x[:, :-1], dim=0)) == len(x)
        far = cdist(x, x)[(y[:, None] != y).numpy()]
        assert far.min() > 2 * delta
    assert not torch.equal(points.y[0], points.y[1])


def test_more_data_sets_change_none_of_the_earlier_ones():
    assert torch.equal(drawn(seeds=2).x, drawn(seeds=3).x[:2])


@pytest.mark.parametrize("bias", [0.01, 0.05, -0.27])
def test_balls_broken_of_an_affine_function_are_those_within_delta_of_its_plane(bias):
    points, weight = drawn(), torch.tensor([0.3, -0.2, 0.1, 1.0]).double()
    net, ball = Affine(weight, bias), Ball(norm="l2", radius=0.25)
    rngs = generators("attack", seeds=range(3))
    margins = points.y * (points.x @ weight + bias) / weight.norm()
    assert torch.equal(packing_runs.wrong(net, points), margins <= 0)
    clear = (margins - 0.25).abs() > 1e-6
    broken = packing_runs.broken(net, points, ball, rngs)
    assert torch.equal(broken[clear], (margins <= 0.25)[clear])


def test_a_step_against_the_last_axis_reaches_the_sphere_and_the_slice():
    points = drawn()
    away = packing_runs.against(points, 0.3) - points.x
    assert torch.allclose(away.norm(dim=-1), torch.tensor(0.3).double())
    assert torch.allclose(packing_runs.against(points, 0.2)[..., -1], torch.zeros(1).double())


def test_half_radius_of_profiles_with_a_known_one():
    r = distance_to_explicit.RAYS
    line = np.stack([1 - r / 0.8, 1 - r / 0.6, 0 * r + 1])[None]
    # Halves at 0.4, 0.3 and never: the median is 0.4.
    assert distance_to_explicit.half_radius(line) == pytest.approx([0.4])
    assert distance_to_explicit.half_radius(line[:, 2:]) == pytest.approx([1.0])


def test_f_S_remembers_the_balls_of_its_training_points_only():
    case = distance_to_explicit.Case(d=6, delta=0.3, height=0.28, n=1, replicates=3, steps=1)
    table = distance_to_explicit.compute(case)
    found = table.filter(network="f_S", length=0.0)
    assert found["clean fresh"].to_list() == found["robust train"].to_list() == [0.0] * 3
    assert found["robust fresh"].to_list() == [1.0] * 3
    assert np.abs(found["spread"].to_numpy()).max() < 1e-12
    expected = np.sqrt((0.3**2 + 0.7**2) / 2 - 0.28**2)
    assert found["radius"].to_numpy() == pytest.approx(expected, rel=1e-3)
    assert found["distance balls fresh"].max() == 0


def test_a_smoke_run_has_every_verdict():
    cases = distance_to_explicit.recipe("smoke", 3)
    table = pl.concat(
        distance_to_explicit.compute(case).with_columns(
            d=case.d, delta=case.delta, height=case.height
        )
        for case in cases
    )
    found = [verdict.id for verdict in distance_to_explicit.verdicts(table)]
    assert found == list(distance_to_explicit.ABOUT.claims)


def test_least_widths_of_errors_by_hand():
    rows = {
        "part": ["ladder"] * 9, "d": [5] * 3 + [6] * 3 + [7] * 3, "seed": [0] * 9,
        "width": [2, 4, 8] * 3,
        "robust train": [0.3, 0.1, 0.0, 0.05, 0.0, 0.0, 0.5, 0.4, 0.2],
    }  # fmt: skip
    found = trained_lower_bound.least_widths(pl.DataFrame(rows))
    assert found["width"].to_list() == pytest.approx([4, 2, np.nan], nan_ok=True)
    assert found["parameters"].to_list()[:2] == pytest.approx([4 * 7 + 1, 2 * 8 + 1])
    halfway = pl.DataFrame(rows).with_columns(pl.Series("robust train", [0.3, 0.15, 0.05] * 3))
    # In the middle of 4 and 8 on a scale of logarithms.
    widths = trained_lower_bound.least_widths(halfway)["width"].to_list()
    assert widths == pytest.approx([4 * 2**0.5] * 3)


def test_doublings_of_widths_that_double_or_not():
    rows = [(d, seed, 3.0 * factor**d) for seed, factor in ((0, 2.0), (1, 1.0)) for d in (5, 6, 7)]
    least = pl.DataFrame(rows, schema=["d", "seed", "width"], orient="row")
    assert trained_lower_bound.doublings(least) == pytest.approx([1.0, 0.0])


def test_parameters_and_points_of_a_trained_case():
    case = trained_lower_bound.Case(part="sample", d=7, width=3, steps=2, replicates=3)
    found = trained_lower_bound.compute(case)
    net = packing_runs.TwoLayer.draw(
        7, 3, "relu", generators("size", seeds=[0])[0], init="torch", bias=True, train_top=True
    )
    assert found["parameters"].to_list() == [sum(one.numel() for one in net.parameters())] * 3
    assert found["points"].to_list() == [56] * 3
    assert found["robust test"].null_count() == 0
    whole = trained_lower_bound.Case(part="all", d=5, width=3, steps=2, replicates=3)
    assert trained_lower_bound.compute(whole)["robust test"].null_count() == 3
