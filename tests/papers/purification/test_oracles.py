"""The oracles against their formulas, entry by entry, and against each other."""

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.models import Stack
from advlab.papers.purification.models import (
    PolynomialOracle,
    ReLUOracle,
    ThresholdedOracle,
    linear_oracle,
    oracle_bias,
    symmetric_oracle,
)

D, K = 12, 4


def setting(spread: float = 0.3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = generator("sparse oracles", spread)
    M = torch.linalg.qr(torch.randn(D, D, generator=rng, dtype=torch.float64))[0]
    sign = torch.randint(2, (D,), generator=rng).double() * 2 - 1
    w = sign * (1 - spread + 2 * spread * torch.rand(D, generator=rng, dtype=torch.float64))
    return M, w, torch.randn(40, D, generator=rng, dtype=torch.float64) / 2


def by_hand(x: torch.Tensor, M: torch.Tensor, w: torch.Tensor, entry) -> torch.Tensor:
    values = [
        sum(float(w[j]) * entry(float(row @ M[:, j]), float(w[j])) for j in range(D)) for row in x
    ]
    return torch.tensor(values, dtype=torch.float64)


def soft(u: float, b: float) -> float:
    return max(u - b, 0.0) - max(-u - b, 0.0)


@pytest.mark.parametrize(
    ("make", "entry"),
    [
        (linear_oracle, lambda u, w: u),
        (lambda M, w: ThresholdedOracle(M, w, 0.3), lambda u, w: u if abs(u) >= 0.3 else 0.0),
        (lambda M, w: ReLUOracle(M, w, 0.25), lambda u, w: soft(u, 0.25)),
        (lambda M, w: symmetric_oracle(M, w, 0.25), lambda u, w: soft(w * u, 0.25) / w),
        (lambda M, w: PolynomialOracle(M, w, 3), lambda u, w: u**3),
    ],
    ids=["linear", "thresholded", "relu", "symmetric", "polynomial"],
)
def test_oracles_are_their_formulas_and_odd(make, entry):
    M, w, x = setting()
    f = make(M, w)
    torch.testing.assert_close(f(x).detach(), by_hand(x, M, w, entry))
    torch.testing.assert_close(f(-x), -f(x))
    assert f(x).abs().max() > 0.1


def test_the_two_relu_oracles_agree_where_all_weights_are_one():
    M, w, x = setting(spread=0.0)
    torch.testing.assert_close(ReLUOracle(M, w, 0.25)(x), symmetric_oracle(M, w, 0.25)(x).detach())
    M, w, x = setting(spread=0.3)
    assert (ReLUOracle(M, w, 0.25)(x) - symmetric_oracle(M, w, 0.25)(x)).abs().max() > 0.01


def test_denoising_oracles_ignore_dense_perturbations_and_the_linear_one_does_not():
    """A hidden vector of k entries 1/sqrt(k), moved by 1/sqrt(d) each way along M w*."""
    M, w, _ = setting()
    z = torch.zeros(1, D, dtype=torch.float64)
    z[0, :K] = w[:K].sign() / K**0.5
    x, b = z @ M.T, oracle_bias(K)
    moved = x - 0.24 * w.sign() @ M.T
    assert b == pytest.approx(0.25)
    for f in (ThresholdedOracle(M, w, b), ReLUOracle(M, w, b)):
        assert f(x) > 0
        assert f(moved) > 0
    linear = linear_oracle(M, w)
    assert linear(x) > 0 > linear(moved)


def test_oracles_can_be_stacked():
    parts = [setting(spread) for spread in (0.1, 0.3)]
    stack = Stack([ReLUOracle(M, w, 0.25) for M, w, _ in parts])
    x = torch.cat([rows for *_, rows in parts])
    alone = torch.cat([ReLUOracle(M, w, 0.25)(rows) for M, w, rows in parts])
    torch.testing.assert_close(stack(x), alone)


def test_refusals():
    M, w, _ = setting()
    with pytest.raises(AdvlabError, match="odd degree"):
        PolynomialOracle(M, w, 2)
    for make in (ThresholdedOracle, ReLUOracle, symmetric_oracle):
        with pytest.raises(AdvlabError, match="positive"):
            make(M, w, 0.0)
