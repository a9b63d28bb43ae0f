"""Tensor norms against tensors that are written out."""

import itertools

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.papers.purification.measures import (
    claimed_norm,
    least_ratio,
    symmetric_tensor_norm,
    tensor_norm,
)

LETTERS = "abcdefg"


def some(*shape: int, name: object) -> torch.Tensor:
    return torch.randn(*shape, generator=generator("ntk", name), dtype=torch.float64)


def tensor(v: torch.Tensor, w: torch.Tensor, r: int) -> torch.Tensor:
    unit = w / w.norm(dim=-1, keepdim=True)
    axes = LETTERS[: r + 1]
    rule = ",".join("i" + a for a in axes) + "->" + axes
    return torch.einsum(rule, v, *[unit] * r)


def symmetrised(t: torch.Tensor) -> torch.Tensor:
    orders = list(itertools.permutations(range(t.ndim)))
    return torch.stack([t.permute(order) for order in orders]).mean(0)


@pytest.mark.parametrize("r", [1, 2, 3])
def test_norms_are_those_of_explicit_tensors(r):
    v, w = some(2, 5, 4, name="v"), some(2, 5, 4, name="w")
    for one in range(2):
        whole = tensor(v[one], w[one], r)
        torch.testing.assert_close(tensor_norm(v, w, r)[one], whole.norm())
        torch.testing.assert_close(symmetric_tensor_norm(v, w, r)[one], symmetrised(whole).norm())


def test_the_symmetric_norm_belongs_to_the_polynomial():
    """Two ways to write one polynomial have one symmetric norm: <v,x><w,x> = <w,x><v,x>."""
    v, w = some(1, 4, name="a"), some(1, 4, name="b")
    unit = w / w.norm()
    other = symmetric_tensor_norm(unit * v.norm(), v, 1)
    torch.testing.assert_close(symmetric_tensor_norm(v, w, 1), other)
    zero = symmetric_tensor_norm(torch.cat([v, -v]), torch.cat([w, w]), 3)
    assert float(zero) < 1e-7


def test_the_claim_and_a_bad_power():
    v = torch.diag(torch.tensor([1.0, 3.0, 2.0, 0.0])).double()
    assert float(claimed_norm(v)) == pytest.approx(1.5)
    # Orthonormal neurons: no cancellation, the norm is that of all v together.
    assert float(tensor_norm(v, torch.eye(4).double(), 3)) == pytest.approx(14**0.5)
    with pytest.raises(AdvlabError, match="at least 1"):
        tensor_norm(v, v, 0)


@pytest.mark.parametrize(("m", "d", "r"), [(3, 3, 3), (5, 4, 3), (6, 6, 2)])
def test_the_least_ratio_is_attained_and_nothing_found_by_descent_is_below(m, d, r):
    w = some(m, d, name=("least", m, d))
    least, v = least_ratio(w, r)
    attained = symmetric_tensor_norm(v, w, r) / claimed_norm(v)
    torch.testing.assert_close(attained, least)
    unit = w / w.norm(dim=1, keepdim=True)
    c = unit @ unit.mT
    found = some(40, m, d, name="starts").requires_grad_()
    steps = torch.optim.Adam([found], lr=0.03)
    for _ in range(1500):
        cross = found @ unit.mT
        squared = ((found @ found.mT) * c**r + r * cross * cross.mT * c ** (r - 1)).sum((1, 2))
        ratio = squared * d / (r + 1) / (found**2).sum(2).amax(1)
        steps.zero_grad()
        ratio.sum().backward()
        steps.step()
    best = float(ratio.detach().min().sqrt())
    assert float(least) <= best + 1e-9
    assert best < 1.03 * float(least)
