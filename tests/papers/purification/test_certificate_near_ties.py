"""Certificates at near-ties: where rounding decides, nothing is certified that is not so.

One pair with a bias, and any number of pairs without one, make y f linear up to where it ends, so
the exact worst margin is y f(x) - tau |sum_i w_i|_*, here in long double. Inputs are put where it
is zero, up to a few units in the last place, with parts that cancel in every inner product.
"""

import numpy as np
import pytest
import torch

from advlab.papers.purification.measures import Nets, certified, certified_margin, curve_terms
from advlab.threats import Ball

LONG = np.longdouble
DUAL = {"l1": np.inf, "l2": 2, "linf": 1}


def near_ties(rng, dtype, rows, norm, biased):
    """A network, a ball, and inputs whose worst margin is about zero; all exact in `dtype`."""
    kind = {torch.float32: np.float32, torch.float64: np.float64}[dtype]
    m, d = (1, int(rng.integers(2, 6))) if biased else rng.integers((2, 2), (9, 6))
    weight = rng.normal(size=(m, d)).astype(kind)
    bias = float(kind(abs(rng.normal()) if biased else 0.0))
    radius = float(abs(rng.normal()) + 0.05)
    total = weight.astype(LONG).sum(0)
    target = m * LONG(bias) + LONG(radius) * np.linalg.norm(total.astype(float), DUAL[norm])
    x = 10 ** rng.uniform(-1, 4, size=(rows, 1)) * rng.normal(size=(rows, d))
    y = np.sign(rng.normal(size=rows))
    x -= np.outer((x @ total - y * target) / (total @ total), total).astype(float)
    x = x.astype(kind)
    # A last place or two, this way or that, in one coordinate.
    x[:, 0] += (np.spacing(np.abs(x[:, 0])) * rng.integers(-2, 3, size=rows)).astype(kind)
    nets = Nets.at(torch.from_numpy(weight), bias)
    return nets, torch.from_numpy(x), torch.from_numpy(y.astype(kind)), Ball(norm, radius)


def dual_norm(vector, norm):
    """In long double, which numpy's norms leave."""
    if norm == "l2":
        return np.sqrt((vector * vector).sum())
    return np.abs(vector).sum() if norm == "linf" else np.abs(vector).max()


def truth(nets, x, y, ball):
    """The worst margin, in long double."""
    weight, m = nets.weight.numpy().astype(LONG), len(nets.weight)
    total = weight.sum(0)
    value = y.numpy().astype(LONG) * (x.numpy().astype(LONG) @ total) - m * LONG(float(nets.bias))
    return value - LONG(ball.radius) * dual_norm(total, ball.norm)


def count(dtype, networks, rows, seed=0):
    """False certificates, those that the bare bounds would have given, and true ones far away."""
    rng, false, bare, far = np.random.default_rng(seed), 0, 0, 0
    for k in range(networks):
        norm = ("l2", "linf", "l1")[k % 3]
        nets, x, y, ball = near_ties(rng, dtype, rows, norm, biased=k % 2 == 0)
        broken = torch.from_numpy(truth(nets, x, y, ball) <= 0)
        false += int((certified(nets, x, y, ball) & broken).sum())
        room = torch.maximum(curve_terms(nets, x, y, ball)[0], certified_margin(nets, x, y, ball))
        bare += int(((room > 0) & broken).sum())
        total = nets.weight.sum(0)
        away = x + 0.02 * x.norm(dim=1, keepdim=True) * y[:, None] * total / total.norm()
        far += int(certified(nets, away, y, ball).sum())
    return false, bare, far


@pytest.mark.skipif(np.finfo(LONG).eps > 2e-19, reason="long double is no longer than double")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_false_certificate_at_near_ties(dtype):
    false, bare, far = count(dtype, 60, 2_000)
    assert false == 0
    assert bare > 5_000, "the ties are too far from zero to test anything"
    assert far > 100_000, "a certificate that certifies nothing is no certificate"


@pytest.mark.nightly
@pytest.mark.skipif(np.finfo(LONG).eps > 2e-19, reason="long double is no longer than double")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_false_certificate_in_a_million_near_ties(dtype):
    false, bare, _ = count(dtype, 500, 2_000, seed=1)
    assert false == 0
    assert bare > 40_000


def test_the_near_tie_that_was_certified_once():
    """A margin of -1.1e-8 in real numbers, which float32 cannot see."""
    weight = torch.tensor([[1.2334257364273071, 0.5934566855430603, -0.1444416642189026]])
    x = torch.tensor([[0.7210372686386108, -0.433203786611557, 0.24184849858283997]])
    nets, ball = Nets.at(weight, 0.19894570112228394), Ball("l2", 0.28944227695465086)
    assert not certified(nets, x, torch.ones(1), ball).any()
