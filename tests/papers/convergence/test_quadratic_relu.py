"""Appendix C.2: the floor under quadratic ReLU, antipodes that keep their distance, the runs."""

import numpy as np
import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import pseudo_huber
from advlab.models import TwoLayer
from advlab.papers.convergence.data.separated_antipodes import SeparatedAntipodes
from advlab.papers.convergence.experiments import quadratic_relu
from advlab.papers.convergence.experiments._parts.quadratic_relu_runs import Case, data
from advlab.papers.convergence.theory.quadratic_floor import quadratic_floor


def pairs(seed, n=20):
    law = SeparatedAntipodes(n=n, d=3, labels="equal", separation=0.4)
    return law.sample(generator("pairs", seed))


@pytest.mark.parametrize("seed", range(3))
def test_no_network_of_any_weights_is_below_the_floor(seed):
    """Plain descent on the clean loss, from a large start and far beyond the lazy regime."""
    x, y = pairs(seed)
    floor = quadratic_floor(x[::2].numpy(), y[::2].numpy())
    net = TwoLayer.draw(3, 40, "quadratic_relu", generator("net", seed), init="torch")
    optimiser = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=500, tolerance_change=1e-12)

    def closure():
        optimiser.zero_grad()
        value = pseudo_huber(net(x), y).mean()
        value.backward()
        return value

    optimiser.step(closure)
    reached = float(pseudo_huber(net(x), y).mean().detach())
    assert floor > 0.01
    # A wide network has all quadratic forms, so that descent finds the floor itself.
    assert floor - 1e-9 <= reached <= floor + 0.02


@pytest.mark.parametrize("seed", range(3))
def test_the_floor_is_the_least_of_many_forms(seed):
    x, y = (part.numpy()[::2] for part in pairs(seed))
    rng = np.random.default_rng(seed)
    floor = quadratic_floor(x, y)
    drawn = rng.standard_normal((2000, 3, 3)) * rng.uniform(0, 4, (2000, 1, 1))
    values = np.einsum("ni,kij,nj->kn", x, drawn, x)
    losses = (np.sqrt(1 + (values - y) ** 2) - 1).mean(1)
    assert 0 <= floor <= losses.min()


def test_six_pairs_in_three_dimensions_have_no_floor():
    x, y = pairs(0, n=12)
    assert quadratic_floor(x[::2].numpy(), y[::2].numpy()) < 1e-8


def test_antipodes_keep_their_distance_and_are_refused_where_they_cannot():
    x, y = pairs(5)
    gaps = torch.cdist(x, x)
    gaps[gaps < 1e-9] = 2
    assert float(gaps.min()) >= 0.4
    torch.testing.assert_close(x[1::2], -x[::2])
    assert (y[1::2] == y[::2]).all()
    with pytest.raises(AdvlabError, match="even"):
        SeparatedAntipodes(n=5, d=2, separation=0.1).sample(generator("odd"))
    with pytest.raises(AdvlabError, match="separation"):
        SeparatedAntipodes(n=40, d=2, separation=1.0).sample(generator("too many"))


def test_kinds_of_data_share_their_lines():
    apart, equal, opposite = (
        data(Case(kind=kind, replicates=2)) for kind in ("apart", "equal", "opposite")
    )
    torch.testing.assert_close(apart[0], equal[0][:, ::2])
    torch.testing.assert_close(equal[0], opposite[0])
    assert (equal[1][:, ::2] == equal[1][:, 1::2]).all()
    assert (opposite[1][:, ::2] == -opposite[1][:, 1::2]).all()


def test_a_small_run():
    """The first loss is that of f = 0; bounds and floors are on their sides."""
    small = {"width": 64, "steps": 3, "searched": 5, "replicates": 2}
    table = quadratic_relu.compute(Case(kind="apart", **small))
    np.testing.assert_allclose(table["first"], np.sqrt(2) - 1)
    assert table["attack"].n_unique() == 8
    assert (table["proved"] > table["least"]).all()
    assert table["even"].to_numpy().max() < 1e-12
    equal = quadratic_relu.compute(Case(kind="equal", **small))
    assert (equal["worst"] >= equal["floor"]).all()
    assert "proved" not in equal.columns


def test_coefficients_have_the_squared_norm():
    """M sum ||c_r||^2 -> ||h||^2: within three standard errors at M = 20000."""
    table = quadratic_relu.compute(Case(kind="features", features=(20000,), replicates=4, points=9))
    np.testing.assert_allclose(table["coefficients"] / table["norm"] ** 2, 1, atol=0.05)
