"""Correlations of neurons: cosines by hand, permutations, dead neurons, snapshots of any kind."""

import numpy as np
import pytest
import torch
from torch import nn

from advlab.core.errors import AdvlabError
from advlab.measure.correlations import (
    absolute_cosines,
    alive,
    layer_weights,
    neuron_correlations,
    pair_correlations,
    stage_correlations,
    theta,
)
from advlab.papers.purification.measures import correlations as paper


def network(seed: int) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Conv2d(3, 12, 5), nn.ReLU(), nn.Flatten(), nn.Linear(12 * 16, 7))


def by_hand(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([
        [abs(np.dot(p, q)) / np.sqrt(np.dot(p, p) * np.dot(q, q)) for q in b] for p in a
    ])  # fmt: skip


def test_theta_of_a_convolution_is_the_cosine_of_its_filters():
    one, other = network(0), network(1)
    a, b = (m[0].weight.detach().numpy().reshape(12, -1) for m in (one, other))
    table = by_hand(a, b)
    found = neuron_correlations(one, other.state_dict(), "0")
    np.testing.assert_allclose(found.theta.numpy(), np.diag(table), atol=1e-6)
    np.testing.assert_array_equal(found.nearest.numpy(), table.argmax(0))
    others = (table.sum(0) - np.diag(table)) / 11
    np.testing.assert_allclose(found.others.numpy(), others, atol=1e-6)
    np.testing.assert_allclose(absolute_cosines(*map(torch.tensor, (a, b))), table, atol=1e-6)


def test_signs_and_lengths_do_not_count_and_swapped_neurons_lose_their_identity():
    before, after = network(2), network(2)
    with torch.no_grad():
        after[0].weight *= -3
        after[0].weight[[4, 5]] = after[0].weight[[5, 4]].clone()
    found = neuron_correlations(before, after, "0")
    assert found.nearest.tolist() == [0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11]
    assert found.identity == pytest.approx(10 / 12)
    assert found.share_above(0.999) == pytest.approx(10 / 12)
    assert float(found.theta[[4, 5]].max()) < 0.9
    assert found.share_above(0.8) + found.share_below(0.8) == 1


def test_dead_neurons_do_not_count():
    before, after = network(3), network(4)
    with torch.no_grad():
        for model in (before, after):
            model[0].weight[:3] *= 1e-3
        after[0].weight[3] = 0
    found = neuron_correlations(before, after, "0")
    assert found.alive.tolist() == [False] * 3 + [True] * 9
    assert float(found.theta[3]) == 0
    assert found.mean == pytest.approx(float(found.theta[3:].mean()))
    pairs = pair_correlations(after, "0")
    w = after[0].weight[4:].detach().numpy().reshape(8, -1)
    off = by_hand(w, w)[~np.eye(8, dtype=bool)]
    assert pairs.alive == 8
    assert pairs.mean == pytest.approx(off.mean(), abs=1e-6)
    assert pairs.below == pytest.approx((off < 0.2).mean())


def test_replicates_are_those_of_the_purification_paper():
    w0, w = torch.randn(2, 3, 6, 9, generator=torch.Generator().manual_seed(0)).unbind(0)
    torch.testing.assert_close(theta(w0, w), paper.theta(w0, w))
    assert torch.equal(alive(w), paper.alive(w))


def test_stages_give_a_row_for_every_pair_and_layer():
    stages = {"start": network(5), "clean": network(6), "robust": network(6)}
    rows = stage_correlations(stages, ["0", "3"])
    assert [(r["layer"], r["before"], r["after"]) for r in rows[:3]] == [
        ("0", "start", "clean"), ("0", "start", "robust"), ("0", "clean", "robust"),
    ]  # fmt: skip
    assert rows[2]["mean"] == pytest.approx(1, abs=1e-6)
    assert rows[2]["identity"] == 1
    # The control: unrelated neurons of the start have the cosine of random directions.
    assert rows[0]["mean"] == pytest.approx(np.sqrt(2 / np.pi / 75), rel=0.5)
    assert rows[3]["layer"] == "3"
    assert rows[3]["alive"] == 7


def test_layers_that_are_not_there_are_refused_with_those_that_are():
    with pytest.raises(AdvlabError, match="there are 0, 3"):
        layer_weights(network(0), "conv1")
    with pytest.raises(AdvlabError, match="rows are neurons"):
        layer_weights(nn.Sequential(nn.ConvTranspose2d(2, 3, 3)), "0")
    wide = network(0)
    wide[0] = nn.Conv2d(3, 5, 5)
    with pytest.raises(AdvlabError, match="one layer"):
        neuron_correlations(network(0), wide, "0")
