"""Problems drawn in k coordinates have the law of those drawn in d."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import chi2, ks_2samp, kstest
from turns import in_turn

from advlab.attacks import PGD
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.models import Stack, TwoLayer
from advlab.papers.benign.data import NoisyMixture
from advlab.papers.benign.data.mixture import Quartic, Scaled
from advlab.papers.benign.reductions import TwoLayerAdversarial, attacked, mixture_law
from advlab.threats import Ball
from advlab.training import fit

LEAST = 1e-3
"""Seeds are fixed: these tests pass always or never. A p-value this small is no accident."""
SYMMETRIC = mixture_law.Start(width=6, activation="relu", omega=0.3)
TORCH = mixture_law.Start(width=6, activation="relu", init="torch", bias=True, train_top=True)


@pytest.mark.parametrize(("rows", "dim"), [(4, 9), (5, 5), (6, 3)])
def test_bartlett_products_have_wisharts_law(rows, dim):
    rng = generator("bartlett", rows, dim)
    short = torch.stack([mixture_law.bartlett(rows, dim, rng) for _ in range(3000)])
    assert short.shape[1:] == (rows, min(rows, dim))
    assert short.triu(1).abs().max() == 0
    long = torch.randn(3000, rows, dim, generator=rng, dtype=torch.float64)
    fast, slow = short @ short.mT, long @ long.mT
    for i in range(rows):
        assert kstest(fast[:, i, i].numpy(), chi2(dim).cdf).pvalue > LEAST
    for one, other in [(fast[:, 0, -1], slow[:, 0, -1]), (fast[:, 1, 2], slow[:, 1, 2])]:
        assert ks_2samp(one.numpy(), other.numpy()).pvalue > LEAST
    largest = [torch.linalg.eigvalsh(g)[:, -1].numpy() for g in (fast, slow)]
    assert ks_2samp(*largest).pvalue > LEAST


def _plain(data, start, rng, tested):
    """The same problem with all its d coordinates."""
    net = start.draw(data.d, rng)
    return mixture_law.MixtureProblem(data.sample(rng), data.sample(rng, tested), net)


def _seen(problem):
    """Numbers of a problem that training can depend on: inner products of every kind."""
    train, test, net = problem.train, problem.test, problem.model
    w = net.weight.detach()
    direction = torch.zeros(w.shape[1], dtype=w.dtype)
    direction[0] = 1.0
    return {
        "x.x'": train.x[0] @ train.x[1],
        "|x|": train.x[0].norm(),
        "y x.w": train.y[0] * (train.x[0] @ w[0]),
        "w.w": w[0] @ w[1],
        "|w|": w[0].norm(),
        "w.mu": w[1] @ direction,
        "y_c x.mu": train.y_clean[0] * (train.x[0] @ direction),
        "test.w": test.y_clean[0] * (test.x[0] @ w[0]),
        "test.x": test.x[0] @ train.x[0],
        "f": net(train.x)[0].detach(),
    }


@pytest.mark.parametrize(
    ("cluster", "d", "start"),
    in_turn(product(["gaussian", Scaled(s=0.5)], [8, 30, 4], [SYMMETRIC, TORCH]), always=2),
)
def test_inner_products_have_the_same_law(start, d, cluster):
    data = NoisyMixture(n=5, d=d, mu_norm=1.5, beta=0.2, cluster=cluster)
    rng = generator("law", start.init, d)
    fast = [_seen(mixture_law.draw(data, start, rng, tested=1)) for _ in range(400)]
    slow = [_seen(_plain(data, start, rng, tested=1)) for _ in range(400)]
    for name in fast[0]:
        one, other = (np.array([float(seen[name]) for seen in side]) for side in (fast, slow))
        assert ks_2samp(one, other).pvalue > LEAST, name


def test_trained_networks_have_the_same_errors():
    """End to end, where all inner products work together: robust test margins after training."""
    data = NoisyMixture(n=6, d=40, mu_norm=2.0, beta=0.2)
    ball = Ball(norm="l2", radius=0.5)
    attack = PGD(steps=5, step_size=0.4, random_start=False, jump=False)

    def margins(draw):
        drawn = [draw(data, TORCH, rng, 2) for rng in generators(draw.__name__, seeds=range(400))]
        stack = Stack([one.model for one in drawn])
        x, y, fresh, label = (
            torch.stack([getattr(getattr(one, part), name) for one in drawn])
            for part in ("train", "test")
            for name in ("x", "y")
        )
        fit(
            stack, x, y, steps=20, lr=0.3,
            objective=TwoLayerAdversarial(loss="logistic", ball=ball, attack=attack),
        )  # fmt: skip
        seen = attacked(stack, fresh.flatten(0, 1), label.flatten(), ball, attack, "margin").loss
        return seen[::2].numpy()

    assert ks_2samp(margins(mixture_law.draw), margins(_plain)).pvalue > LEAST


def test_no_vector_has_d_coordinates():
    data = NoisyMixture(n=5, d=10**9, mu_norm=100.0, beta=0.2)
    problem = mixture_law.draw(data, SYMMETRIC, generator("huge"), tested=7)
    # mu, three different rows of weights, five inputs
    assert problem.train.x.shape == (5, 9)
    assert problem.test.x.shape == (7, 9)
    assert problem.model.weight.shape == (6, 9)
    assert torch.allclose(problem.train.x.norm(dim=1), torch.tensor(10**4.5).double(), rtol=1e-3)


def test_uniform_weights_keep_their_inner_products():
    for d in (4, 9, 50):
        net = TORCH.draw(d, generator("uniform"))
        problem = mixture_law.draw(
            NoisyMixture(n=3, d=d, mu_norm=1.0), TORCH, generator("uniform"), tested=2
        )
        w, seen = net.weight.detach(), problem.model.weight.detach()
        torch.testing.assert_close(seen @ seen.T, w @ w.T)
        assert torch.equal(seen[:, 0], w[:, 0])
        assert torch.equal(problem.model.bias, net.bias)


def test_a_symmetric_start_stays_zero():
    problem = mixture_law.draw(NoisyMixture(n=5, d=30, mu_norm=1.0), SYMMETRIC, generator("zero"))
    assert bool(problem.model.mirrored())
    assert not problem.model(problem.test.x).any()


def test_flips_see_the_mean():
    data = NoisyMixture(n=10, d=500, mu_norm=2.0, beta=0.3, flips="margin")
    train = mixture_law.draw(data, SYMMETRIC, generator("flips")).train
    margin = train.y_clean * train.x[:, 0]
    assert train.noisy.sum() == 3
    assert margin[train.noisy].max() < margin[train.clean].min()


def test_a_replicate_is_the_same_alone():
    data = NoisyMixture(n=5, d=30, mu_norm=1.0, beta=0.2)
    stack = mixture_law.draw_stack(data, TORCH, generators("stack", seeds=range(3)), tested=4)
    alone = mixture_law.draw(data, TORCH, generators("stack", seeds=range(3))[1], tested=4)
    assert torch.equal(stack.train.x[1], alone.train.x)
    assert torch.equal(stack.test.y[1], alone.test.y)
    assert torch.equal(stack.model.replicate(1).weight, alone.model.weight)


def test_bad_input_is_refused():
    quartic = NoisyMixture(n=5, d=30, mu_norm=1.0, cluster=Quartic(lam=1.0, c=1.0))
    with pytest.raises(AdvlabError, match="Gaussian clusters"):
        mixture_law.draw(quartic, SYMMETRIC, generator("bad"))
    with pytest.raises(AdvlabError, match="rows of 1 or more"):
        mixture_law.bartlett(0, 3, generator("bad"))
    with pytest.raises(AdvlabError, match="even width"):
        mixture_law.draw(
            NoisyMixture(n=5, d=30, mu_norm=1.0),
            mixture_law.Start(width=5, activation="relu", omega=0.1),
            generator("bad"),
        )


def test_a_wrong_law_is_told_apart():
    """The tests above can fail: a triangle with one degree of freedom too few is noticed."""
    rng = generator("wrong")
    found = torch.stack([mixture_law.bartlett(3, 8, rng) for _ in range(3000)])
    squares = (found @ found.mT)[:, 0, 0].numpy()
    assert kstest(squares, chi2(7).cdf).pvalue < LEAST
    assert isinstance(
        mixture_law.draw(NoisyMixture(n=2, d=3, mu_norm=1.0), SYMMETRIC, rng).model, TwoLayer
    )
