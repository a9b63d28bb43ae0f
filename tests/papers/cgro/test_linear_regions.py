"""Linear regions, counted by linear programmes, against Zaslavsky's sum and dense sampling."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.papers.cgro.experiments import linear_regions as experiment
from advlab.papers.cgro.theory import linear_regions, most_cells, region_count


def network(rng, *sizes):
    return [(rng.normal(size=(out, into)), rng.normal(size=out)) for into, out in pairwise(sizes)]


def output(layers, x):
    """The network itself, and the signs of all its units."""
    signs = []
    for weight, bias in layers[:-1]:
        x = x @ weight.T + bias
        signs.append(x > 0)
        x = np.maximum(x, 0)
    weight, bias = layers[-1]
    return (x @ weight.T + bias)[:, 0], np.hstack(signs)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 1), (4, 2), (6, 2), (5, 3), (3, 5)])
def test_one_hidden_layer_has_the_cells_of_its_hyperplanes(n, d):
    layers = network(np.random.default_rng(n), d, n, 1)
    assert len(linear_regions(layers)) == most_cells(n, d)


@pytest.mark.parametrize("sizes", [(1, 6, 1), (2, 5, 1), (1, 4, 4, 1), (2, 3, 3, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_regions_are_the_patterns_that_a_dense_sample_of_the_cube_shows(sizes, seed):
    """A fine grid sees every region that is not a sliver; the count is never below it."""
    layers = network(np.random.default_rng(seed), *sizes)
    found = linear_regions(layers, 1.0)
    side = np.linspace(-1, 1, 20_001 if sizes[0] == 1 else 801)
    x = np.stack(np.meshgrid(*[side] * sizes[0]), -1).reshape(-1, sizes[0])
    seen = {row.tobytes() for row in output(layers, x)[1]}
    assert len(seen) <= len(found) <= len(seen) + 1


def test_on_each_region_the_network_is_what_the_region_says():
    rng = np.random.default_rng(0)
    layers = network(rng, 2, 4, 3, 1)
    regions, x = linear_regions(layers, 1.0), rng.uniform(-1, 1, size=(2000, 2))
    inside = np.stack([(x @ one.A.T <= one.b + 1e-12).all(1) for one in regions])
    assert (inside.sum(0) == 1).all()
    said = sum(
        here * (x @ one.slope + one.offset) for here, one in zip(inside, regions, strict=True)
    )
    value, _ = output(layers, x)
    np.testing.assert_allclose(said, value, atol=1e-9)
    for here, one in zip(inside, regions, strict=True):
        if (value[here] > 0).any() and (value[here] < 0).any():
            assert one.has_zero()
        if here.sum() > 50 and one.has_zero():
            assert value[here].min() < 0.2 * np.abs(value[here]).max()


def test_dead_units_cut_nothing():
    layers = [(np.array([[1.0], [0.0]]), np.array([0.0, 1.0])), (np.ones((1, 2)), np.zeros(1))]
    assert len(linear_regions(layers)) == 2


def test_several_outputs_are_refused():
    with pytest.raises(AdvlabError, match="one output"):
        linear_regions(network(np.random.default_rng(0), 2, 3, 2))


def test_points_show_the_regions_and_find_out_a_count_that_asks_no_programme(monkeypatch):
    case = experiment.Case(kind="deep start", d=3, n=6, replicates=3)
    found = experiment.compute(case)
    assert (found["regions"] == found["shown"]).all()
    assert (found["affine"] <= found["shown"]).all()
    monkeypatch.setattr(region_count, "_has_inside", lambda A, b: True)
    monkeypatch.setattr(region_count.LinearRegion, "has_zero", lambda region: False)
    every = experiment.compute(case)
    assert (every["regions"] > 2 * found["regions"]).all()
    assert (every["shown"] < every["regions"]).all()


def test_affine_functions_are_counted_once_where_units_do_not_count():
    """|x| with a unit that nothing reads: three patterns of signs, two functions."""
    layers = [
        (np.array([[1.0], [-1.0], [1.0]]), np.array([0.0, 0.0, -0.25])),
        (np.array([[1.0, 1.0, 0.0]]), np.zeros(1)),
    ]
    x = torch.linspace(-0.5, 0.5, 101, dtype=torch.float64)[:, None] + 1e-3
    assert experiment._seen(layers, x) == (3, 2)


def test_deep_networks_are_trained():
    start, taught = (
        experiment._networks(experiment.Case(kind=kind, d=3, n=6, steps=20, replicates=2))
        for kind in ("deep start", "deep adversarial")
    )
    assert [weight.shape for weight, _ in start[0]] == [(3, 3), (3, 3), (1, 3)]
    assert not np.allclose(start[0][0][0], taught[0][0][0])
