"""Generated images: a population of ten classes that a nearest centre tells apart."""

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.data.stand_in_images import stand_in_images


def test_two_draws_are_of_one_population():
    first, second = (stand_in_images(600, generator("draw", k)) for k in range(2))
    assert first.x.shape == (600, 3, 16, 16)
    assert 0 <= float(first.x.min()) <= float(first.x.max()) <= 1
    assert not torch.equal(first.x, second.x)
    centres = torch.stack([first.x[first.y == label].mean(0) for label in range(10)]).flatten(1)
    found = torch.cdist(second.x.flatten(1), centres).argmin(1)
    assert float((found == second.y).double().mean()) > 0.99


def test_same_name_same_images_and_what_is_refused():
    one, other = (stand_in_images(5, generator("same"), channels=1, side=8) for _ in range(2))
    assert torch.equal(one.x, other.x)
    with pytest.raises(AdvlabError, match="at least 1"):
        stand_in_images(0, generator("none"))
