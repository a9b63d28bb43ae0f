"""The dense mixture against sums written out, and on neurons whose answer is known."""

import math

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.papers.purification.measures import (
    alive,
    change_energy,
    coordinates,
    covered,
    dense_over_top,
    idealised,
    label_cosine,
    label_direction,
    label_parts,
    mixture,
    own_sets,
    theta,
    top,
    top_energy,
)

R, M_WIDTH, D = 2, 9, 5


def some(*shape: int, name: object = "w") -> torch.Tensor:
    return torch.randn(*shape, generator=generator("dense", name), dtype=torch.float64)


W = some(R, M_WIDTH, D)
M = torch.linalg.qr(some(R, D, D, name="M")).Q
STAR = some(R, D, name="star")
A = coordinates(W, M)


def test_alpha_and_beta_put_the_neurons_back_together():
    sets = torch.rand(R, M_WIDTH, D, generator=generator("sets")) < 0.4
    for own in (None, sets):
        parts = mixture(A, STAR, own)
        assert not bool((parts.alpha * parts.beta).any())
        atoms = (M * STAR[:, None]).mT
        torch.testing.assert_close((parts.alpha + parts.beta) @ atoms, W)
        wanted = own_sets(A) if own is None else own
        assert torch.equal(parts.counts, wanted.sum(-1))


def test_the_scalars_are_sums_over_the_atoms():
    parts = mixture(A, STAR)
    for r in range(R):
        betas = []
        for i in range(M_WIDTH):
            row = [float(W[r, i] @ M[r, :, j]) for j in range(D)]
            peak = max(range(D), key=lambda j: abs(row[j]))
            betas += [row[j] / float(STAR[r, j]) for j in range(D) if j != peak]
            rest = sum(float(W[r, i] @ (STAR[r, j] * M[r, :, j])) for j in range(D) if j != peak)
            norm = float(W[r, i].norm())
            assert int(top(A)[r, i]) == peak
            assert float(dense_over_top(A, STAR)[r, i]) == pytest.approx(rest / abs(row[peak]))
            assert float(top_energy(W, M)[r, i]) == pytest.approx(row[peak] ** 2 / norm**2)
            way = sum(STAR[r, j] * M[r, :, j] for j in range(D))
            inner = float(W[r, i] @ way)
            direction = label_direction(M, STAR)
            assert float(label_parts(W, direction)[r, i]) == pytest.approx(inner)
            cosine = inner / norm / float(way.norm())
            assert float(label_cosine(W, direction)[r, i]) == pytest.approx(cosine)
        assert float(parts.mean_beta[r]) == pytest.approx(sum(betas) / (M_WIDTH * D))
        assert float(parts.largest_beta[r]) == pytest.approx(max(map(abs, betas)))
        assert float(parts.mean_beta_over(3)[r]) == pytest.approx(sum(betas) / (M_WIDTH * 3))


def test_winners_have_one_own_atom_and_enough_of_it():
    A = torch.tensor([[2.0, 0.1], [0.5, 0.1], [2.0, 2.0], [-2.0, 0.0]]).double()
    own = torch.tensor([[1, 0], [1, 0], [1, 1], [1, 0]]).bool()
    assert int(mixture(A, torch.ones(2).double(), own).winners(1.0)) == 1


def test_covered_atoms_are_the_tops_of_neurons_alive():
    for r in range(R):
        tops = {int(A[r, i].abs().argmax()) for i in range(M_WIDTH) if bool(alive(W)[r, i])}
        assert int(covered(W, M)[r]) == len(tops)
    w = torch.diag(torch.tensor([1.0, 1.0, 0.1])).double()
    assert int(covered(w, torch.eye(3).double())) == 2


def test_the_energy_of_a_change_on_the_label():
    direction = label_direction(M, STAR)
    on = W + some(R, M_WIDTH, 1, name="on") * direction[:, None]
    torch.testing.assert_close(change_energy(W, on, direction), torch.ones(R).double())
    change = some(R, M_WIDTH, D, name="change")
    for r in range(R):
        u = direction[r] / direction[r].norm()
        share = sum(float(change[r, i] @ u) ** 2 for i in range(M_WIDTH))
        expected = share / float((change[r] ** 2).sum())
        assert float(change_energy(W, W + change, direction)[r]) == pytest.approx(expected)


@pytest.mark.parametrize("p", [0.0, 0.05, 0.3])
def test_the_idealised_neuron_has_the_arithmetic_of_section_2_2(p):
    signs = STAR.sign()
    w = idealised(M, signs, p, scale=1.7)
    pure = (M * signs[:, None]).mT
    expected = torch.full((R, D), 1 / math.sqrt(1 + p**2 * (D - 1))).double()
    torch.testing.assert_close(theta(w, pure), expected)
    A = coordinates(w, M)
    torch.testing.assert_close(dense_over_top(A, signs), torch.full((R, D), p * (D - 1)).double())
    parts = mixture(A, signs)
    torch.testing.assert_close(parts.mean_beta, torch.full((R,), 1.7 * p * (D - 1) / D).double())


def test_dead_neurons_and_zeros_in_the_label_vector():
    zero = torch.zeros(2, D).double()
    assert top_energy(zero, M[0]).tolist() == [0, 0]
    assert label_cosine(zero, M[0, 0]).tolist() == [0, 0]
    assert dense_over_top(zero, STAR[0]).tolist() == [0, 0]
    with pytest.raises(AdvlabError, match="without zeros"):
        mixture(A, torch.zeros(R, D).double())
