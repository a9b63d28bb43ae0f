"""The shattering clusters against the theory's own points and balls."""

import numpy as np
import pytest
import torch
from scipy import stats

from advlab.data import DATA, Shattering
from advlab.errors import AdvlabError
from advlab.randomness import generator, generators
from advlab.theory import capacity


@pytest.mark.parametrize(("clusters", "d"), [(1, 1), (3, 2), (2, 5), (4, 40)])
def test_points_are_those_of_theorem_6_1_and_balls_give_them_their_labels(clusters, d):
    model = Shattering(n=clusters * d, d=d, delta=0.5, eps=0.4 * min(1, 2 / np.sqrt(d)))
    data = model.sample(generator("points"))
    expected = capacity.cluster_points(2 * clusters, d, model.delta, model.eps)
    np.testing.assert_allclose(data.x.numpy(), expected.reshape(-1, d), atol=1e-12)
    assert data.cluster.tolist() == np.repeat(np.arange(1, clusters + 1), d).tolist()
    balls = capacity.shatter(2 * clusters, d, model.delta, model.eps, data.y.numpy())
    assert balls.holds
    assert np.array_equal(balls.classify(data.x.numpy()), data.y.numpy())


def test_any_number_of_examples_is_the_start_of_a_longer_list():
    model = Shattering(n=12, d=5, eps=0.5)
    long, short = model.sample(generator("n")), model.sample(generator("n"), n=7)
    assert torch.equal(long.x[:7], short.x)
    assert short.cluster.tolist() == [1] * 5 + [2] * 2


def test_labels_are_fair_and_independent_coins():
    stack = Shattering(n=3, d=3, eps=0.5).sample_stack(generators("coins", seeds=range(4000)))
    assert set(stack.y.flatten().tolist()) == {-1.0, 1.0}
    words = ((stack.y > 0).long() @ torch.tensor([1, 2, 4])).numpy()
    assert stats.chisquare(np.bincount(words, minlength=8)).pvalue > 0.001
    assert torch.equal(stack.x, stack.x[:1].expand_as(stack.x))


def test_a_replicate_has_the_same_bits_alone_and_in_a_stack():
    model = Shattering(n=8, d=3, eps=0.5)
    stack = model.sample_stack(generators("stack", seeds=range(4)))
    assert stack.x.shape == (4, 8, 3)
    assert stack.y.shape == stack.cluster.shape == (4, 8)
    for r in range(4):
        alone = model.sample(generator("stack", r))
        assert all(torch.equal(whole[r], part) for whole, part in zip(stack, alone, strict=True))


def test_the_model_is_registered_and_survives_json():
    model = DATA["shattering"](n=5, d=3, eps=0.5)
    assert Shattering.model_validate_json(model.model_dump_json()) == model


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"eps": 1.0}, "below delta"),
        ({"d": 16, "eps": 0.6}, "so below 0.5"),
        ({"delta": 0.4}, "so below 0.4"),
        ({"eps": 0.0}, "eps"),
        ({"delta": -1.0}, "delta"),
        ({"d": 0}, "d"),
        ({"n": 0}, "n"),
        ({"gamma": 1.0}, "unknown setting"),
    ],
)
def test_mistakes_are_named(settings, says):
    with pytest.raises(AdvlabError, match=says):
        Shattering(**{"n": 6, "d": 3, "eps": 0.5} | settings)


def test_an_empty_draw_is_refused():
    with pytest.raises(AdvlabError, match="n >= 1"):
        Shattering(n=6, d=3, eps=0.5).sample(generator("x"), n=0)
