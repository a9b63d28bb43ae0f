"""Laws of the sparse-coding data: levels, labels, dictionaries, noise, margin, refusals."""

from math import sqrt

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.papers.purification.data import Concept, SparseCoding, require_orthonormal


def law(**changes) -> SparseCoding:
    return SparseCoding(**({"n": 4000, "d": 64, "k": 9} | changes))


def share_within(hits: torch.Tensor, probability: float) -> bool:
    """Within five standard deviations of a binomial share."""
    spread = sqrt(probability * (1 - probability) / hits.numel())
    return abs(float(hits.double().mean()) - probability) <= 5 * spread


def test_hidden_entries_have_their_levels_at_their_rates():
    model = law(levels=((0.6, 2.0),))
    z = model.sample(generator("levels")).z.abs()
    small = (z >= 1 / 3) & (z <= 1.3 / 3)
    assert share_within(z == 1, 1 / 64)
    assert share_within(small, 0.5 * 9 / 64)
    assert share_within(z == 0.6, 2 / 64)
    assert ((z == 0) | (z == 1) | (z == 0.6) | small).all()


def test_moments_are_the_stated_ones():
    """E|z|^2 = p_big + fs E(1 + hi U)^2, E|z|_0 = p_big + fs k, and z is symmetric."""
    points = law(n=20_000).sample(generator("moments"))
    second = (points.z**2).sum(1)
    expected = 1 + 0.5 * (1 + 0.3 + 0.09 / 3)
    assert abs(float(second.mean()) - expected) < 5 * float(second.std()) / sqrt(20_000)
    count = (points.z != 0).double().sum(1)
    assert abs(float(count.mean()) - 5.5) < 5 * float(count.std()) / sqrt(20_000)
    assert abs(float(points.z.sum())) < 5 * sqrt(20_000 * expected)


@pytest.mark.parametrize(
    ("kind", "atoms"),
    [("orthogonal", None), ("identity", None), ("undercomplete", 20), ("incoherent", 100)],
)
def test_inputs_are_the_dictionary_times_the_hidden_vector(kind, atoms):
    points = law(dictionary=kind, atoms=atoms, n=50).sample(generator(kind))
    torch.testing.assert_close(points.x, torch.einsum("dj,nj->nd", points.M, points.z))
    assert torch.equal(points.y, torch.where((points.z * points.w).sum(1) >= 0, 1.0, -1.0).double())
    assert points.M.shape == (64, atoms or 64)
    torch.testing.assert_close(points.M.norm(dim=0), torch.ones(atoms or 64, dtype=torch.float64))
    assert ((points.w.abs() >= 0.7) & (points.w.abs() <= 1.3)).all()


def test_orthogonal_kinds_are_orthonormal_and_the_incoherent_is_nearly():
    for kind, atoms in (("orthogonal", None), ("undercomplete", 20)):
        require_orthonormal(law(dictionary=kind, atoms=atoms).concept(generator(kind)).M)
    M = law(dictionary="incoherent", atoms=128).concept(generator("i")).M
    coherence = (M.T @ M - torch.eye(128, dtype=torch.float64)).abs().max()
    assert 0.1 < float(coherence) < 6 / sqrt(64)


def test_dictionaries_are_uniform_over_rotations():
    """Haar: every entry has mean 0 and second moment 1/d, the first columns are no exception."""
    first = torch.stack(
        [law(d=16, k=4).concept(rng).M[:, 0] for rng in generators("haar", seeds=range(400))]
    )
    assert float(first.mean(0).abs().max()) < 5 / sqrt(16 * 400)
    assert float((first**2).mean(0).sub(1 / 16).abs().max()) < 5 * sqrt(2) / 16 / sqrt(400)


def test_noise_has_its_size():
    concept = law().concept(generator("c"))
    gaussian = law(sx=1.5).sample(generator("g"), 4000, concept)
    left = gaussian.x - gaussian.z @ gaussian.M.T
    assert abs(float((left**2).sum(1).mean()) - 1.5**2) < 0.05
    spiky = law(spikes=4.0).sample(generator("s"), 4000, concept)
    spikes = (spiky.x - spiky.z @ spiky.M.T) @ spiky.M
    hit = spikes.abs() > 1e-9
    assert share_within(hit, 4 / 64)
    torch.testing.assert_close(
        spikes[hit].abs(), torch.full_like(spikes[hit], 9**-0.501), rtol=1e-9, atol=1e-12
    )


def test_margin_is_a_condition_and_nothing_else():
    """With a margin the law is the old one given |<w*, z>| > margin."""
    concept = law().concept(generator("c"))
    free = law(n=30_000).sample(generator("free"), None, concept)
    kept = free.z[(free.z @ concept.w).abs() > 1.0]
    strict = law(n=10_000, margin=1.0).sample(generator("strict"), None, concept).z
    assert ((strict @ concept.w).abs() > 1.0).all()
    gap = (strict**2).sum(1).mean() - (kept**2).sum(1).mean()
    assert abs(float(gap)) < 5 * float((kept**2).sum(1).std()) * sqrt(1 / len(kept) + 1 / 10_000)


def test_labels_are_odd_in_the_input():
    points = law(n=100, margin=0.01).sample(generator("odd"))
    assert torch.equal(((-points.z) @ points.w).sign(), -points.y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 65}, "k of at most"),
        ({"k": 0}, "k"),
        ({"p_big": 65.0}, "at most 64"),
        ({"p_big": 0.0, "fs": 0.0}, "above 0"),
        ({"levels": ((0.1, 1.0),)}, "levels between"),
        ({"dictionary": "undercomplete"}, "fewer atoms"),
        ({"atoms": 10}, "as many atoms"),
        ({"hi": 5.0}, "hi"),
        ({"sx": -1.0}, "sx"),
        ({"spread": 1.0}, "spread"),
    ],
)
def test_impossible_laws_are_refused(changes, message):
    with pytest.raises(AdvlabError, match=message):
        law(**changes)


def test_a_margin_nobody_has_is_refused():
    with pytest.raises(AdvlabError, match="margin"):
        law(margin=50.0).sample(generator("never"))


def test_a_dictionary_that_must_be_orthogonal_is_checked():
    crooked = Concept(torch.ones(64, 64, dtype=torch.float64), torch.ones(64, dtype=torch.float64))
    with pytest.raises(AdvlabError, match="orthonormal"):
        law().sample(generator("c"), None, crooked)
    with pytest.raises(AdvlabError, match="shape"):
        law().sample(generator("c"), None, Concept(crooked.M[:3], crooked.w))
    law(dictionary="incoherent").sample(generator("c"), 5, crooked)
