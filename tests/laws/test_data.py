"""Laws that every data model of the papers keeps."""

import pytest
import torch

from advlab.core.randomness import generator
from advlab.data import DataModel
from advlab.papers.benign.data import NoisyMixture
from advlab.papers.cgro.data import Patches
from advlab.papers.convergence.data import Antipodes, Sphere
from advlab.papers.generalization.data import LinearModel
from advlab.papers.purification.data import SparseCoding

MODELS: tuple[DataModel, ...] = (
    LinearModel(n=5, d=3),
    NoisyMixture(n=5, d=3, mu_norm=1.0, beta=0.3),
    Sphere(n=5, d=3, separation=0.2),
    Antipodes(n=4, d=3),
    Patches(n=5, d=3, alpha=1.0, sigma=0.1, gamma=0.5),
    SparseCoding(n=5, d=8, k=4),
)


def test_no_data_model_is_left_out():
    def final(kind: type) -> set[type]:
        below = [one for child in kind.__subclasses__() for one in final(child)]
        return set(below) or {kind}

    ours = {one for one in final(DataModel) if one.__module__.startswith("advlab.")}
    assert ours == {type(model) for model in MODELS}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_data_model_draws_what_its_generator_says(model):
    same, again, other = (model.sample(generator("x", seed)) for seed in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(same, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(same, other, strict=True))
    assert len(model.sample(generator("x"), n=8)[0]) == 8
