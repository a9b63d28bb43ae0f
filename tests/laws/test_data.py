"""Laws that every data model of the papers keeps."""

import pytest

from advlab.data import DataModel
from advlab.papers.benign.data import NoisyMixture
from advlab.papers.cgro.data import Patches
from advlab.papers.convergence.data import Antipodes, Sphere
from advlab.papers.convergence.data.separated_antipodes import SeparatedAntipodes
from advlab.papers.generalization.data import LinearModel
from advlab.papers.purification.data import SparseCoding
from advlab.testing import check_data

MODELS: tuple[DataModel, ...] = (
    LinearModel(n=5, d=3),
    NoisyMixture(n=5, d=3, mu_norm=1.0, beta=0.3),
    Sphere(n=5, d=3, separation=0.2),
    Antipodes(n=4, d=3),
    SeparatedAntipodes(n=4, d=3, separation=0.5),
    Patches(n=5, d=3, alpha=1.0, sigma=0.1, gamma=0.5),
    SparseCoding(n=5, d=8, k=4),
)


def test_no_data_model_is_left_out():
    def final(kind: type) -> set[type]:
        below = [one for child in kind.__subclasses__() for one in final(child)]
        return set(below) or {kind}

    ours = {one for one in final(DataModel) if one.__module__.startswith("advlab.")}
    missing = ours - {type(model) for model in MODELS}
    assert not missing, f"add one of each to MODELS above: {missing}"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("seed", [0, 7])
def test_every_data_model_keeps_the_laws(model, seed):
    check_data(model, seed=seed)
