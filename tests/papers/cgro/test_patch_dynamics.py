"""Closed patch dynamics against plain training in d dimensions, and their laws against samples."""

from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy import stats

from advlab import training
from advlab.attacks import PGD, Attack
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.losses import ModelLoss, logistic
from advlab.models import Stack
from advlab.papers.cgro.data import Patches
from advlab.papers.cgro.models import PatchCNN
from advlab.papers.cgro.reductions import patch_errors, patch_law
from advlab.papers.cgro.reductions.patch_dynamics import PatchState, log_steps, trajectory
from advlab.threats import Ball

LAWS = [Patches.scaled(n=6, d=d, P=4, polylog=polylog) for d, polylog in ((200, None), (120, 2.0))]
SMALL = Patches(n=5, d=9, P=3, alpha=2.0, sigma=0.5, gamma=0.9)
"""K = 10 noise patches in 8 dimensions."""


class Shrink(Attack):
    """GTA: the one patch with a first coordinate loses the share gamma."""

    ascends: ClassVar[bool] = False
    gamma: float

    def search(self, best, threat, rng):
        best.settle(torch.where(best.x[..., :1] != 0, (1 - self.gamma) * best.x, best.x))


def problem(law: Patches, seed: int, sigma0: float, filters: int = 7):
    points = law.sample(generator("points", seed))
    net = PatchCNN.draw(law.d, filters, sigma0, generator("net", seed))
    return points, net, patch_law.of_points(law, points, net.weight)


def direct(law: Patches, points, net: PatchCNN, lam: float, eta: float, steps: int, every: int):
    return training.fit(
        net,
        points.x,
        points.y,
        steps=steps,
        lr=eta,
        objective=training.Mixed(
            loss="logistic",
            ball=Ball(norm="l2", radius=law.delta * (1 + 1e-12)),
            attack=Shrink(gamma=law.gamma),
            lam=lam,
        ),
        hooks=[training.Probe({"weight": lambda model: model.weight}, every=every)],
    ).log


def joined(problems):
    names = patch_law.PatchProblem.__dataclass_fields__
    return patch_law.PatchProblem(
        **{name: torch.cat([getattr(one, name) for one in problems]) for name in names}
    )


def relative(found, expected) -> float:
    return float((found - expected).norm() / expected.norm())


def test_a_stack_is_plain_training_to_1e_12_through_all_phases_lifted_weights_included():
    """Two replicates with their own law, lam and eta, against autograd in d dimensions."""
    drawn = [problem(law, seed, law.d**-0.5) for seed, law in enumerate(LAWS)]
    lam, eta = torch.tensor([0.5, 0.8]).double(), torch.tensor([0.1, 0.07]).double()
    steps, every = 1200, 100
    states = list(
        trajectory(joined([one[2] for one in drawn]), lam, eta, range(0, steps + 1, every))
    )
    for r, (law, (points, net, _)) in enumerate(zip(LAWS, drawn, strict=True)):
        start, star = net.weight.detach().clone(), law.direction()
        noise = patch_law.noise_patches(law, points)
        log = direct(law, points, net, float(lam[r]), float(eta[r]), steps, every)
        for state, weight in zip(states, log.probes["weight"], strict=True):
            w = weight[0]
            assert relative(state.lift(law, points, start)[r], w) < 1e-12
            assert relative(state.u[r], w @ star) < 1e-12
            assert relative(state.v[r], noise @ w.T) < 1e-12
            assert relative(state.weight_gram[r], w[:, 1:] @ w[:, 1:].T) < 1e-12
            assert float(state.loss[r]) == pytest.approx(float(log.loss[state.step]), rel=1e-11)
        # All phases: signal first, then memorisation of every example.
        assert float(states[1].signal[r]) > 3
        assert float(states[1].V[r].max()) < 0.2
        assert float(states[-1].V[r].min()) > 1


def test_more_patches_than_dimensions_are_no_trouble():
    points, net, start = problem(SMALL, 3, 0.3)
    first = net.weight.detach().clone()
    log = direct(SMALL, points, net, 0.5, 0.01, 300, 100)
    states = list(trajectory(start, 0.5, 0.01, [0, 100, 200, 300]))
    for state, weight in zip(states, log.probes["weight"], strict=True):
        assert relative(state.lift(SMALL, points, first)[0], weight[0]) < 1e-12


def trained(steps: int = 400) -> tuple[Patches, tuple, PatchState, torch.Tensor]:
    """One network in the midst of memorising, and its weights in d dimensions."""
    law = LAWS[0]
    points, net, start = problem(law, 5, law.d**-0.5)
    (state,) = trajectory(start, 0.5, 0.1, [steps])
    return law, points, state, state.lift(law, points, net.weight.detach())[0]


def test_gradients_margins_and_errors_are_those_of_the_network():
    law, points, state, weight = trained()
    net = PatchCNN(weight)
    clean, attacked = net(points.x), net(law.gta(points))
    losses = [logistic(f, points.y).mean() for f in (clean, attacked)]
    (grad,) = torch.autograd.grad((losses[0] + losses[1]) / 2, net.parameters())
    assert float(state.gradient_norm[0]) == pytest.approx(float(grad.norm()), rel=1e-10)
    for f, which in ((clean, False), (attacked, True)):
        margins = (points.y * f).detach()
        torch.testing.assert_close(state.margins(which)[0], margins, rtol=1e-9, atol=1e-12)
        assert float(state.errors(which)[0]) == float((margins <= 0).double().mean())
    gram, v0 = state.problem.gram[0], state.problem.v[0]
    own = torch.diag(gram.diagonal())
    torch.testing.assert_close(
        state.cross_talk()[0], (gram - own) @ state.beta[0], rtol=1e-8, atol=1e-12
    )
    assert float((state.v[0] - v0).abs().max()) > 0.1


def test_fresh_errors_are_those_of_fresh_inputs_in_d_dimensions():
    law, _, state, weight = trained(40)
    n = 20_000
    fresh = patch_errors.FreshNoise.draw(state, n, generator("fresh"))
    points = law.sample(generator("test"), n=n)
    net = PatchCNN(weight)
    noise = fresh.noise(state)[0].numpy()
    seen = (points.y * net(points.x)).detach().numpy() - float(state.signal[0])
    assert stats.ks_2samp(noise, seen).pvalue > 0.001
    for x, which in ((points.x, False), (law.gta(points), True)):
        wrong = float((points.y * net(x).detach() <= 0).double().mean())
        found = float(fresh.errors(state, which)[0])
        assert abs(found - wrong) < 4 * np.sqrt(0.5 / n)


@pytest.mark.parametrize("steps", [0, 400])
def test_attacks_in_coordinates_find_what_attacks_in_d_dimensions_find(steps):
    _, points, state, weight = trained(steps)
    ball, pgd = Ball(norm="l2", radius=0.3), PGD(steps=30, random_start=False)
    net, y = patch_errors.network(state), points.y
    x = patch_errors.train_inputs(state)[0]
    reduced = pgd(ModelLoss(net, y, logistic), x, ball, rng=generator("a")).loss
    plain = pgd(ModelLoss(PatchCNN(weight), y, logistic), points.x, ball, rng=generator("a")).loss
    torch.testing.assert_close(reduced, plain, rtol=1e-9, atol=1e-12)
    assert bool((plain > logistic(PatchCNN(weight)(points.x), y).detach()).all())


def test_fresh_inputs_in_coordinates_are_seen_as_the_projections_say():
    _, _, state, _ = trained()
    fresh = patch_errors.FreshNoise.draw(state, 50, generator("fresh"))
    x = patch_errors.test_inputs(state, fresh)
    f = patch_errors.network(state)(x[0])
    expected = state.signal[0] + fresh.noise(state)[0]
    torch.testing.assert_close(f.detach(), expected, rtol=1e-9, atol=1e-12)


def test_full_ball_pgd_runs_on_stacks_with_thirty_restarts():
    law = LAWS[0]
    start = patch_law.draw_stack(law, 5, law.d**-0.5, generators("pgd", seeds=range(2)))
    (state,) = trajectory(start, 0.5, 0.1, [1500])
    net, x = patch_errors.network(state), patch_errors.train_inputs(state)
    assert isinstance(net, Stack)
    loss = ModelLoss(net, start.y.flatten(), logistic)
    rngs = generators("restart", seeds=range(2))
    found = [
        PGD(steps=20, restarts=restarts)(
            loss, x.flatten(0, 1), Ball(norm="l2", radius=law.delta), rng=rngs
        ).loss
        for restarts in (1, 30)
    ]
    # GTA is one point of the ball: the worst one is far worse (claim 12).
    gta = torch.nn.functional.softplus(-state.margins(True)).flatten()
    assert bool((found[1] > gta).all())
    assert float(found[1].min()) > np.log(2)


def statistics_of(one) -> list[float]:
    p = one
    return [
        float(p.gram[0, 0, 0]), float(p.gram[0, 0, 1]), float(torch.linalg.det(p.gram[0, :2, :2])),
        float(p.v[0, 0, 0]), float(p.v[0].max()), float((p.v[0].T @ p.v[0])[0, 1]),
        float(p.weight_gram[0, 0, 0]), float(p.weight_gram[0, 0, 1]), float(p.u[0, 0]),
        float(p.v[0, :, 0] @ p.gram[0] @ p.v[0, :, 1]),
    ]  # fmt: skip


@pytest.mark.parametrize("d", [9, 40])
def test_the_law_without_d_vectors_is_the_law_of_d_vectors(d):
    """Kolmogorov-Smirnov on ten statistics, with fewer and with more dimensions than patches."""
    law = SMALL.model_copy(update={"d": d})
    short = [
        statistics_of(patch_law.draw(law, 3, 0.3, generator("short", seed))) for seed in range(400)
    ]
    long = [statistics_of(problem(law, seed, 0.3, 3)[2]) for seed in range(300)]
    for one, other in zip(np.array(short).T, np.array(long).T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 0.001


def test_a_replicate_runs_the_same_alone_and_in_company():
    laws = [SMALL, SMALL.model_copy(update={"d": 60}), SMALL.model_copy(update={"gamma": 0.5})]
    stack = patch_law.draw_stack(laws, 4, [0.3, 0.2, 0.1], generators("r", seeds=range(3)))
    (whole,) = trajectory(stack, 0.5, 0.01, [200])
    for r, (law, sigma0) in enumerate(zip(laws, (0.3, 0.2, 0.1), strict=True)):
        (alone,) = trajectory(patch_law.draw(law, 4, sigma0, generator("r", r)), 0.5, 0.01, [200])
        torch.testing.assert_close(whole.v[r], alone.v[0], rtol=1e-13, atol=1e-16)
        torch.testing.assert_close(whole.u[r], alone.u[0], rtol=1e-13, atol=1e-16)


def test_log_steps_begin_with_every_step_and_end_where_asked():
    steps = log_steps(1000, 1.1)
    assert steps[:10] == list(range(10))
    assert steps[-1] == 1000
    assert all(a < b <= 1.1 * a + 1 for a, b in pairwise(steps))
    assert log_steps(0) == [0]


def test_what_memory_cannot_hold_is_refused_before_anything_is_drawn():
    large = SMALL.model_copy(update={"n": 400_000})
    with pytest.raises(AdvlabError, match=r"GiB.*800000 noise patches"):
        patch_law.draw_stack(large, 4, 0.1, generators("large", seeds=range(2)))


def test_mistakes_are_named():
    rngs = generators("x", seeds=range(2))
    with pytest.raises(AdvlabError, match="share n and P"):
        patch_law.draw_stack([SMALL, LAWS[0]], 4, 0.1, rngs)
    with pytest.raises(AdvlabError, match="per generator"):
        patch_law.draw_stack([SMALL], 4, 0.1, rngs)
    start = patch_law.draw(SMALL, 4, 0.1, rngs[0])
    with pytest.raises(AdvlabError, match="lam between 0 and 1"):
        list(trajectory(start, 1.5, 0.1, [1]))
    with pytest.raises(AdvlabError, match="eta"):
        list(trajectory(start, 0.5, float("nan"), [1]))
    with pytest.raises(AdvlabError, match="steps of 0 or more"):
        list(trajectory(start, 0.5, 0.1, []))
