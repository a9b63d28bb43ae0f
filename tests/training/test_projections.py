"""Projections refuse sets that make no sense, in one line."""

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.training import LayerBalls, NeuronCap, WholeBall


@pytest.mark.parametrize("width", [0, -4, 2.5, float("nan"), None])
def test_layer_balls_refuse_widths_that_are_none(width):
    with pytest.raises(AdvlabError, match="width") as error:
        LayerBalls(radius=1.0, width=width)
    assert "\n" not in str(error.value)


def test_layer_balls_have_no_silent_width():
    with pytest.raises(AdvlabError, match="width"):
        LayerBalls(radius=1.0)


@pytest.mark.parametrize("kind", [WholeBall, NeuronCap])
@pytest.mark.parametrize("radius", [0.0, -1.0])
def test_a_radius_is_positive(kind, radius):
    with pytest.raises(AdvlabError, match="radius"):
        kind(radius=radius)


def test_the_radius_of_a_layer_is_that_of_the_paper():
    start = [torch.zeros(1, 4, 4), torch.zeros(1, 4, 4)]
    weights = [torch.ones(1, 4, 4), 0.01 * torch.ones(1, 4, 4)]
    LayerBalls(radius=1.0, width=4).apply(weights, start)
    assert float(weights[0].norm()) == pytest.approx(0.5)
    assert torch.equal(weights[1], 0.01 * torch.ones(1, 4, 4))
