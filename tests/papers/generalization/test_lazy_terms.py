"""The distances of the proofs of Theorems 3 and 4, against loops over neurons."""

import math

import torch

from advlab.papers.generalization.measures.lazy_terms import (
    function_distance,
    linearisation_radius,
    weight_distance,
    weighted,
)


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_the_distances_are_their_definitions():
    one, other, top, theta0 = draw(2, 5, 3), draw(2, 5, 3) + draw(2, 5, 1), draw(2, 5), draw(2, 3)
    found = function_distance(weighted(one, top), weighted(other, top), theta0)
    frobenius = weight_distance(one, other, n=7)
    for r in range(2):
        moved = sum(top[r, j] * (one[r, j] - other[r, j]) for j in range(5)) / math.sqrt(5)
        torch.testing.assert_close(found[r], moved.norm() / theta0[r].norm())
        squares = sum((one[r, j] - other[r, j]).square().sum() for j in range(5))
        torch.testing.assert_close(frobenius[r], squares.sqrt() * math.sqrt(3 * math.log(7)))


def test_the_linearisation_radius_is_the_largest_preactivation():
    theta, x = draw(2, 5, 3), draw(2, 4, 3)
    largest = [max(abs(float(a @ b)) for a in theta[r] for b in x[r]) for r in range(2)]
    torch.testing.assert_close(linearisation_radius(theta, x), torch.tensor(largest))
