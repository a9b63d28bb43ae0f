"""What is special to single attacks: formulas, jumps, sources, and what they refuse."""

import math
from dataclasses import dataclass

import pytest
import torch
from attack_specimens import inputs, losses, network, seeded
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from advlab.attacks import (
    FGM,
    GTA,
    PGD,
    Anti,
    Exact,
    FakeSignal,
    Fixed,
    Grid,
    Identity,
    Random,
    SignalPatch,
    Surrogate,
    Switch,
    Transfer,
)
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, cross_entropy, logistic, squared
from advlab.threats import Ball, Cap


def test_exact_tries_both_ends_and_finds_the_direction_behind_a_zero_residual():
    w = torch.tensor([3.0, 4.0], dtype=torch.float64)
    x = torch.zeros(1, 2, dtype=torch.float64)
    loss = ModelLoss(lambda x: x @ w, torch.zeros(1, dtype=torch.float64), squared)
    found = Exact()(loss, x, Ball(norm="l2", radius=0.1), rng=seeded(0)).loss
    assert float(found) == pytest.approx(0.5**2)


def test_exact_says_when_the_loss_is_not_linear():
    with pytest.warns(UserWarning, match="only a lower bound"):
        Exact()(losses(0)[False], inputs(0), Ball(norm="l2", radius=1.0), rng=seeded(0))


def test_restarts_never_hurt_and_random_loses_to_pgd():
    x, ball, loss = inputs(10), Ball(norm="l2", radius=1.0), losses(10)[False]
    one = PGD(steps=10)(loss, x, ball, rng=seeded(0)).loss
    many = PGD(steps=10, restarts=5)(loss, x, ball, rng=seeded(0)).loss
    guess = Random(samples=10)(loss, x, ball, rng=seeded(0)).loss
    assert (many >= one).all()
    assert many.mean() > guess.mean() > Identity()(loss, x, ball, rng=seeded(0)).loss.mean()


def test_fgm_cutoff_holds_back_rows_with_small_gradients():
    scale = torch.tensor([1.0, 1e-3], dtype=torch.float64)
    x = torch.ones(2, 3, dtype=torch.float64)
    result = FGM(cutoff=0.01)(
        lambda x: scale * x.sum(1), x, Ball(norm="l2", radius=1), rng=seeded(0)
    )
    assert torch.equal(result.x[1], x[1])
    assert not torch.equal(result.x[0], x[0])


@pytest.mark.parametrize(("norm", "length"), [("l1", 1.0), ("l2", 2.0), ("linf", 4.0)])
def test_fgm_measures_gradients_in_the_dual_norm(norm, length):
    """A gradient of four ones has the length 1, 2 or 4, by the norm of the ball."""
    x, ball = torch.zeros(1, 4, dtype=torch.float64), Ball(norm=norm, radius=1)
    for cutoff, moves in ((length, True), (length * 1.01, False)):
        found = FGM(cutoff=cutoff)(lambda x: x.sum(1), x, ball, rng=seeded(0))
        assert bool((found.x != x).any()) == moves


def test_fgm_as_papers_define_it_jumps_whatever_it_costs():
    """A loss that rises at first and falls soon: only the safeguard stays."""
    x, ball = torch.zeros(3, 1, dtype=torch.float64), Ball(norm="l2", radius=1)
    loss = lambda x: x[:, 0] - 2 * x[:, 0] ** 2  # noqa: E731
    plain, kept = (FGM(keep_worst=k)(loss, x, ball, rng=seeded(0)) for k in (False, True))
    assert torch.equal(plain.x, torch.ones_like(x))
    assert torch.equal(plain.loss, torch.full((3,), -1.0).double())
    assert torch.equal(kept.x, x)
    assert FGM().ascends
    assert not FGM(keep_worst=False).ascends


@pytest.mark.parametrize("norm", ["l2", "linf"])
@given(seed=st.integers(0, 50), xi=st.floats(0.01, 10))
@settings(max_examples=30, deadline=None)
def test_the_surrogate_shrinks_by_its_formula(norm, seed, xi):
    x, ball = inputs(seed), Ball(norm=norm, radius=0.3)
    loss = losses(seed)[True]
    grad = torch.autograd.grad(loss(x.requires_grad_()).sum(), x)[0]
    x = x.detach()
    move = Surrogate(xi=xi)(loss, x, ball, rng=seeded(0)).x - x
    if norm == "l2":
        expected = 0.3 * grad / (grad.norm(dim=1, keepdim=True) ** 2 + xi**2).sqrt()
    else:
        expected = 0.3 * grad.sign() * grad.abs() / (grad.abs() + xi)
    torch.testing.assert_close(move, expected)
    assert (ball.norm_of(move) < 0.3).all()
    more = Surrogate(xi=2 * xi)(loss, x, ball, rng=seeded(0)).x - x
    assert (ball.norm_of(more) <= ball.norm_of(move)).all()


def test_anti_lowers_the_loss_and_the_fixed_copy_ignores_it():
    x, ball, loss = inputs(11), Ball(norm="l2", radius=0.5), losses(11)[False]
    assert (Anti()(loss, x, ball, rng=seeded(0)).loss < loss(x)).all()
    copies = [Fixed()(losses(seed)[False], x, ball, rng=seeded(seed)).x for seed in (0, 1)]
    assert torch.equal(*copies)
    torch.testing.assert_close((copies[0] - x).norm(dim=1), torch.full_like(x[:, 0], 0.5))
    assert not torch.equal(Fixed(seed=1)(loss, x, ball, rng=seeded(0)).x, copies[0])


def test_switch_jumps_from_the_worst_point_to_the_best_as_the_loss_moves_by_a_grain():
    x, ball = torch.zeros(1, 2, dtype=torch.float64), Ball(norm="l2", radius=1.0)
    for shift, end in ((0.05, 1.0), (0.15, -1.0), (0.25, 1.0)):
        result = Switch(grain=0.1)(lambda x, s=shift: x[:, 0] + s, x, ball, rng=seeded(0))
        assert float(result.x[0, 0]) == pytest.approx(end)
        assert float(result.loss) == pytest.approx(end + shift)


def test_transfer_attacks_its_source_and_is_known_by_its_weights():
    x, ball, loss = inputs(12), Ball(norm="l2", radius=0.5), losses(12)[False]
    own = PGD(steps=5)
    source = network(5)
    result = Transfer(source=source, inner=own)(loss, x, ball, rng=seeded(0))
    there = own(loss.under(source), x, ball, rng=seeded(0))
    assert torch.equal(result.x, there.x)
    assert torch.equal(result.loss, loss(there.x))
    assert (own(loss, x, ball, rng=seeded(0)).loss > result.loss).all()
    assert Transfer(source=network(5)).key() == Transfer(source=source).key()
    assert Transfer(source=network(6)).key() != Transfer(source=source).key()


def patch_data(seed: int, n: int = 8, P: int = 4, d: int = 30, alpha: float = 2.5):
    """The patch data of the CGRO paper, drawn here: inputs, labels, signal patches, w*."""
    rng = seeded(seed)
    w = torch.randn(d, generator=rng, dtype=torch.float64)
    w = w / w.norm()
    x = torch.randn(n, P, d, generator=rng, dtype=torch.float64)
    x = x - (x @ w)[..., None] * w
    y = 2.0 * torch.randint(0, 2, (n,), generator=rng).double() - 1
    signal = torch.randint(0, P, (n,), generator=rng)
    x[torch.arange(n), signal] = alpha * y[:, None] * w
    return x, y, signal, w


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_gta_with_the_oracle_shrinks_the_signal_and_leaves_the_noise(power, seed):
    alpha, gamma = 2.5, 0.97
    x, y, signal, w = patch_data(seed, alpha=alpha)
    ball = Ball(norm="l2", radius=gamma * alpha)
    attack = GTA(surrogate=SignalPatch(w), gamma=gamma, norm_power=power)
    loss = ModelLoss(lambda x: (x @ w).sum(1), y, logistic)
    found = attack(loss, x, ball, rng=seeded(0)).x
    expected = x.clone()
    for i, j in enumerate(signal.tolist()):
        expected[i, j] = alpha * (1 - gamma) * y[i] * w
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    moved = (found - x).flatten(1).norm(dim=1)
    torch.testing.assert_close(moved, torch.full_like(moved, gamma * alpha), rtol=1e-12, atol=0)


def test_gta_lands_on_the_boundary_of_a_linear_surrogate_whatever_its_scale():
    x, ball, loss = inputs(12), Ball(norm="l2", radius=100.0), losses(12)[False]
    w = torch.randn(5, generator=seeded(3), dtype=torch.float64)
    moved = [
        GTA(surrogate=lambda x, k=scale: k * (x @ w - 0.3))(loss, x, ball, rng=seeded(0)).x
        for scale in (1.0, 7.0)
    ]
    torch.testing.assert_close(*moved)
    torch.testing.assert_close(moved[0] @ w, torch.full_like(x[:, 0], 0.3))
    once = [
        GTA(surrogate=lambda x, k=scale: k * (x @ w - 0.3), norm_power=1)
        for scale in (1 / float(w.norm()), 2 / float(w.norm()))
    ]
    steps = [attack(loss, x, ball, rng=seeded(0)).x - x for attack in once]
    torch.testing.assert_close(steps[0], moved[0] - x)
    torch.testing.assert_close(steps[1], 2 * steps[0])


def test_gta_takes_the_lead_of_several_outputs_and_its_budget_from_the_threat():
    x, loss = inputs(14), losses(14)[False]
    weight = torch.randn(5, 3, generator=seeded(4), dtype=torch.float64)
    found = GTA(surrogate=lambda x: x @ weight)(
        loss, x, Ball(norm="l2", radius=50.0), rng=seeded(0)
    )
    scores = (found.x @ weight).sort(1, descending=True).values
    start = (x @ weight).topk(2, dim=1)
    tied = (found.x @ weight).gather(1, start.indices)
    torch.testing.assert_close(tied[:, 0], tied[:, 1])
    assert scores.shape == (6, 3)
    short = GTA(surrogate=lambda x: x @ weight)(
        loss, x, Ball(norm="l2", radius=0.01), rng=seeded(0)
    )
    torch.testing.assert_close((short.x - x).norm(dim=1), torch.full_like(x[:, 0], 0.01))


def test_gta_leaves_its_surrogate_alone_and_is_known_by_it():
    surrogate = nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.9), nn.Linear(4, 1)).double().train()
    x, ball, loss = inputs(15), Ball(norm="l2", radius=0.5), losses(15)[False]
    once, again = (GTA(surrogate=surrogate)(loss, x, ball, rng=seeded(0)).x for _ in range(2))
    assert torch.equal(once, again)
    assert all(module.training for module in surrogate.modules())
    assert all(p.grad is None for p in surrogate.parameters())

    def key(surrogate):
        return GTA(surrogate=surrogate).key()

    def scaled(k: float):
        return lambda x: k * x.sum(1)

    @dataclass
    class Score:
        w: torch.Tensor

        def __call__(self, x):
            return x @ self.w

    assert key(network(5)) == key(network(5)) != key(network(6))
    assert key(scaled(1.0)) == key(scaled(1.0)) != key(scaled(2.0))
    assert key(lambda x: x.sum(1)) != key(lambda x: x.mean(1))
    assert key(Score(torch.ones(3))) == key(Score(torch.ones(3))) != key(Score(torch.zeros(3)))


@pytest.mark.parametrize("seed", range(3))
def test_fake_signal_moves_two_patches_by_its_budget(seed):
    x, y, signal, w = patch_data(seed)
    ball = Ball(norm="l2", radius=1.7)
    loss = ModelLoss(lambda x: (x @ w).pow(3).sum(1), y, logistic)
    plain = FakeSignal(direction=tuple(w.tolist()), a=0.6, b=0.8, noise=2)
    found = plain(loss, x, ball, rng=seeded(0)).x
    expected = x.clone()
    for i, j in enumerate(signal.tolist()):
        expected[i, j] -= 0.6 * 1.7 * y[i] * w
        expected[i, (j + 2) % 4] -= 0.8 * 1.7 * y[i] * w
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    told = plain.model_copy(update={"signal": tuple(signal.tolist())})
    assert torch.equal(told(loss, x, ball, rng=seeded(0)).x, found)


def test_the_default_fake_is_the_best_split_of_the_budget():
    """(1-a)^3 - b^3 on the circle a^2 + b^2 = 1, by a dense search."""
    angle = torch.linspace(0, math.pi / 2, 100_001, dtype=torch.float64)
    value = (1 - angle.cos()) ** 3 - angle.sin() ** 3
    ours = FakeSignal(direction=(1.0,))
    assert float(angle[value.argmin()].cos()) == pytest.approx(ours.a, abs=0.005)
    assert float(value.min()) == pytest.approx(-0.554, abs=5e-4)
    assert (1 - ours.a) ** 3 - ours.b**3 == pytest.approx(float(value.min()), abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_the_grid_finds_the_worst_point_of_an_arc_and_of_a_cap(seed):
    """Against a hundred thousand angles on the circle; on the sphere against as many samples."""
    for d, threat in ((2, Cap(radius=0.8)), (3, Cap(radius=0.5)), (2, Ball(norm="l2", radius=0.7))):
        x = inputs(seed, Cap(radius=1), rows=1, d=d)
        model = network(seed, d)
        model[0].weight.data *= 4
        one = ModelLoss(model, torch.zeros(1, dtype=torch.long), cross_entropy)
        many = ModelLoss(model, torch.zeros(100_000, dtype=torch.long), cross_entropy)
        if d == 2 and isinstance(threat, Cap):
            edge = 2 * math.asin(threat.radius / 2)
            angle = torch.linspace(-edge, edge, 100_000, dtype=torch.float64)
            points = angle.cos()[:, None] * x + angle.sin()[:, None] * torch.stack(
                [-x[:, 1], x[:, 0]], 1
            )
        else:
            points = threat.sample(x.expand(100_000, -1), rng=seeded(1))
        with torch.no_grad():
            best = float(many(points).max())
        found = float(Grid(points=400)(one, x, threat, rng=seeded(0)).loss)
        assert found >= best - 1e-12
        assert found <= best + 1e-3


def test_bad_input_is_named():
    with pytest.raises(AdvlabError, match="at most three numbers"):
        Grid()(lambda x: x.sum(1), torch.zeros(2, 4), Ball(norm="l2", radius=1.0), rng=seeded(0))
    with pytest.raises(AdvlabError, match="a ModelLoss"):
        Transfer(source=network(0))(
            lambda x: x.sum(1), inputs(0), Ball(norm="l2", radius=1.0), rng=seeded(0)
        )
    ball = Ball(norm="l2", radius=1.0)
    flat = GTA(surrogate=lambda x: x[:, 0].clamp(min=0))
    with pytest.raises(AdvlabError, match="none in 2 of 3 rows: 0, 2"):
        flat(lambda x: x.sum(1), torch.tensor([[-1.0, 0], [1, 0], [-2, 0]]), ball, rng=seeded(0))
    with pytest.raises(AdvlabError, match="length one"):
        FakeSignal(direction=(1.0, 1.0))
    with pytest.raises(AdvlabError, match=r"a\^2 \+ b\^2 of at most 1"):
        FakeSignal(direction=(1.0,), a=0.9, b=0.9)
    for wrong, words in (
        ({"direction": (0.6, 0.8)}, "patches of length 2"),
        ({"direction": (1.0,), "noise": 3}, "a patch beside the signal"),
        ({"direction": (1.0,), "signal": (0,)}, "one signal patch below 3 for each of 2 rows"),
    ):
        with pytest.raises(AdvlabError, match=words):
            FakeSignal(**wrong)(lambda x: x.sum(1), torch.ones(2, 3), ball, rng=seeded(0))
    nan = torch.tensor([[0.0], [float("nan")]])
    with pytest.raises(AdvlabError, match="row 1"):
        FGM()(lambda x: x.sum(1), nan, ball, rng=seeded(0))
    with pytest.raises(AdvlabError, match="one value per example"):
        FGM()(lambda x: x.mean(), torch.zeros(2, 3), ball, rng=seeded(0))
    with pytest.raises(AdvlabError, match="floating point"):
        FGM()(lambda x: x.sum(1), torch.zeros(2, 3, dtype=torch.long), ball, rng=seeded(0))
    with pytest.raises(AdvlabError, match="steps"):
        PGD(steps=0)
