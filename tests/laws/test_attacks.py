"""Laws every attack obeys, whatever its algorithm; those of any attack are in advlab.testing."""

import pytest
import torch
from attack_specimens import dimension, inputs, loss_for, network, seeded, specimen
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from advlab.attacks import (
    APGD,
    ATTACKS,
    FGM,
    GTA,
    MIM,
    PGD,
    Anti,
    Attack,
    AutoAttack,
    Exact,
    Grid,
    Identity,
    MinimumNorm,
    Surrogate,
    Transfer,
)
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, cross_entropy, logistic, margin, squared
from advlab.testing import check_attack
from advlab.threats import Ball, Cap

EVERY = list(ATTACKS.values())
CLIMBERS = [attack for attack in EVERY if attack.ascends and attack is not Exact]
NORMS = ["l1", "l2", "linf"]
FINDS_LINEAR_OPTIMA = [
    FGM(),
    FGM(keep_worst=False),
    PGD(),
    PGD(steps=20, step_size=0.25),
    PGD(steps=5, restarts=2),
    MIM(),
    APGD(),
    APGD(steps=30, random_start=False),
    Exact(),
    Surrogate(xi=0.0),
    Surrogate(xi=0.0, inner=PGD()),
    Surrogate(xi=0.0, inner=FGM(keep_worst=False), keep_worst=False),
]
balls = st.builds(
    Ball,
    norm=st.sampled_from(NORMS),
    radius=st.floats(0.0, 2.0),
    box=st.sampled_from([None, (-2.0, 2.0)]),
)
threats = st.one_of(balls, st.builds(Cap, radius=st.floats(0, 1)))


@pytest.mark.parametrize("attack", EVERY)
def test_every_attack_keeps_the_laws(attack):
    """In the set, honest, repeatable, row by row, touching nothing: `advlab.testing` has them."""
    check_attack(
        specimen(attack),
        scene=lambda seed: (loss_for(attack, seed), inputs(seed, d=dimension(attack))),
        keeps_worst=attack is not Surrogate,
        float32=attack not in (Transfer, GTA),
    )


@given(threat=threats, seed=st.integers(0, 100))
@settings(max_examples=15, deadline=None)
def test_fgm_without_its_safeguard_is_the_jump_itself(threat, seed):
    """It may end below the clean loss, says so, and never leaves the set."""
    x, loss, attack = inputs(seed, threat), loss_for(FGM, seed), FGM(keep_worst=False)
    result = attack(loss, x, threat, rng=seeded(seed))
    assert not attack.ascends
    assert threat.contains(result.x, x).all()
    torch.testing.assert_close(result.loss, loss(result.x), rtol=1e-9, atol=1e-12)
    leaf = x.clone().requires_grad_()
    (grad,) = torch.autograd.grad(loss(leaf).sum(), leaf)
    if threat.radius > 0:
        torch.testing.assert_close(result.x, threat.maximiser(grad, x))


@given(norm=st.sampled_from(NORMS), xi=st.floats(0.0, 2.0), seed=st.integers(0, 100))
@settings(max_examples=15, deadline=None)
def test_the_surrogate_without_its_safeguard_is_the_papers_map(norm, xi, seed):
    """x + eps * g / sqrt(|g|^2 + xi^2) and its like, whatever the loss there; as a map it costs one
    gradient and no evaluation, and keeps the laws that others keep."""
    ball, x, calls = Ball(norm, 0.5), inputs(seed), []
    loss = loss_for(Surrogate, seed)

    def counted(x):
        calls.append(len(x))
        return loss(x)

    attack = Surrogate(xi=xi, inner=FGM(keep_worst=False), keep_worst=False)
    moved = attack.perturb(counted, x, ball, rng=seeded(seed))
    assert len(calls) == 1
    assert not attack.ascends
    leaf = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(loss(leaf).sum(), leaf)
    whole = ball.maximiser(g, x) - x
    size = g.abs() if norm == "linf" else ball.dual_norm(g)[:, None]
    shrink = size / (size + xi) if norm == "linf" else size / (size**2 + xi**2).sqrt()
    shrink = torch.where(size + xi > 0, shrink, 0.0)
    torch.testing.assert_close(moved, x + shrink * whole)
    found = attack(loss, x, ball, rng=seeded(seed))
    torch.testing.assert_close(found.x, moved)
    torch.testing.assert_close(found.loss, loss(moved))


@pytest.mark.parametrize("attack", FINDS_LINEAR_OPTIMA, ids=str)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_reaches_the_worst_case_of_a_linear_model(attack, norm, dtype):
    """The probe that peers miss by up to 0.8: flat Gaussian data, confident points, no box."""
    rng = seeded(0)
    x = torch.randn(256, 40, generator=rng, dtype=dtype)
    w = torch.randn(40, generator=rng, dtype=dtype)
    y = (x @ w).sign()
    ball = Ball(norm=norm, radius={"l1": 0.8, "l2": 0.5, "linf": 0.1}[norm])
    result = attack(ModelLoss(lambda x: 3 * x @ w, y, logistic), x, ball, rng=rng)
    gap = (y * (result.x @ w)) - (y * (x @ w) - ball.radius * ball.dual_norm(w))
    assert gap.mean() <= 1e-5 * ball.radius * ball.dual_norm(w)
    assert gap.min() >= -1e-4
    assert float((result.x - x).abs().max()) > 0


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("attack", [FGM(), PGD()], ids=str)
def test_two_class_cross_entropy_keeps_its_direction_when_confident(attack, classes):
    """log-softmax rounds p_y to 1 and turns the gradient; ours must still point to the optimum."""
    rng = seeded(1)
    weights = torch.zeros(classes, 30)
    weights[:2] = 4 * torch.randn(2, 30, generator=rng)
    offset = torch.zeros(classes)
    offset[2:] = -1000.0
    x = torch.randn(100, 30, generator=rng)
    outputs = lambda x: x @ weights.T + offset  # noqa: E731
    y = outputs(x).argmax(1)
    ball = Ball(norm="l2", radius=0.5)
    result = attack(ModelLoss(outputs, y, cross_entropy), x, ball, rng=rng)
    best = margin(outputs(x), y) + 0.5 * (weights[0] - weights[1]).norm()
    assert float((best - margin(outputs(result.x), y)).mean()) < 1e-5 * float(best.abs().mean())


@pytest.mark.parametrize("norm", NORMS)
def test_fgm_and_exact_are_exact_inside_a_box(norm):
    rng = seeded(2)
    x = torch.rand(50, 20, generator=rng, dtype=torch.float64)
    w = torch.randn(20, generator=rng, dtype=torch.float64)
    ball = Ball(norm=norm, radius={"l1": 3.0, "l2": 1.0, "linf": 0.3}[norm], box=(0, 1))
    best = ball.maximiser(w.expand_as(x), x) @ w
    for attack in (FGM(), Exact(), PGD(steps=5)):
        found = attack(lambda x: x @ w, x, ball, rng=rng).loss
        torch.testing.assert_close(found, best)


@pytest.mark.parametrize("attack", EVERY)
def test_data_in_r_d_is_never_clamped(attack):
    x = 100 * inputs(5, d=dimension(attack))
    result = specimen(attack)(loss_for(attack, 5), x, Ball(norm="linf", radius=0.1), rng=seeded(0))
    assert float((result.x - x).abs().max()) <= 0.1 + 1e-9


@pytest.mark.parametrize("attack", [one for one in EVERY if one is not AutoAttack])
def test_flat_image_and_odd_shapes_agree(attack):
    """An attack sees a row, not its shape; but for Square, which is told so, in AutoAttack not."""
    d, shapes = (2, [(2,), (1, 2, 1), (2, 1)]) if attack is Grid else (6, [(6,), (1, 2, 3), (3, 2)])
    flat = inputs(9, d=d)
    weight = torch.randn(d, 3, generator=seeded(1), dtype=torch.float64)
    y = torch.randint(0, 3, (6,), generator=seeded(2))
    outputs = lambda x: (x.flatten(1) @ weight)[:, :1] if attack is Exact else x.flatten(1) @ weight  # noqa: E731
    per_example = (lambda z, y: squared(z, y.double())) if attack is Exact else cross_entropy
    loss = ModelLoss(outputs, y, per_example)
    for ball in (Ball(norm=n, radius=0.4) for n in NORMS):
        results = [
            specimen(attack, d)(loss, flat.reshape(6, *shape), ball, rng=seeded(0)).x.flatten(1)
            for shape in shapes
        ]
        torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(results[0], results[2], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("attack", CLIMBERS)
@pytest.mark.parametrize("classes", [1, 2, 3, 4, 5, 10])
def test_any_number_of_classes_norm_box_dtype_and_shape(attack, classes):
    """One real output with labels -1, +1, or two classes and more."""
    d = dimension(attack)
    shapes, gain = [(d,), (1, d, 1), (d, 1)], 0.0
    for k, norm in enumerate(NORMS):
        dtype, box = (torch.float32, torch.float64)[(k + classes) % 2], (None, (-2.0, 2.0))[k % 2]
        model = nn.Sequential(nn.Flatten(), network(k, d, classes)).to(dtype)
        x = inputs(k, d=d).to(dtype).reshape(6, *shapes[(k + classes) % 3])
        with torch.no_grad():
            z = model(x)
        y, given = z.argmax(1), (margin, cross_entropy)[k % 2]
        y, given = (z[:, 0].sign(), logistic) if classes == 1 else (y, given)
        loss, ball = ModelLoss(model, y, given), Ball(norm=norm, radius=1.5, box=box)
        result = specimen(attack)(loss, x, ball, rng=seeded(0))
        assert result.x.dtype == result.loss.dtype == dtype
        assert result.x.shape == x.shape
        assert ball.contains(result.x, x).all()
        assert (result.loss >= loss(x)).all()
        gain += float((result.loss - loss(x)).detach().sum())
    assert gain > 0 or attack is Identity


@pytest.mark.parametrize("attack", CLIMBERS)
def test_real_targets_are_climbed_or_refused(attack):
    """Only attacks that look for a decision boundary need one."""
    x, ball = inputs(11, d=dimension(attack)), Ball(norm="l2", radius=0.5)
    target = torch.randn(6, generator=seeded(1), dtype=torch.float64)
    loss = ModelLoss(network(11, dimension(attack), classes=1), target, squared)
    if issubclass(attack, MinimumNorm):
        with pytest.raises(AdvlabError, match=r"labels|ModelLoss"):
            specimen(attack)(loss, x, ball, rng=seeded(0))
        return
    result = specimen(attack)(loss, x, ball, rng=seeded(0))
    assert (result.loss >= loss(x)).all()
    assert result.loss.mean() > loss(x).mean() or attack is Identity


def test_an_attack_that_leaves_its_set_is_caught_and_named():
    class Escape(Attack):
        def search(self, best, threat, rng):
            best.value(best.x + 2 * threat.radius * threat.steepest(best.clean_gradient))

    for threat in (Ball(norm="linf", radius=0.1), Cap(radius=0.1)):
        x = inputs(0, threat)
        with pytest.raises(AdvlabError, match=r"Escape must return points of its threat set.*row"):
            Escape()(lambda x: x.sum(1), x, threat, rng=seeded(0))


def test_a_loss_may_bring_its_own_gradient():
    class Quadratic:
        calls = 0

        def __call__(self, x):
            return x.square().sum(1)

        def value_and_gradient(self, x):
            self.calls += 1
            return self(x), 2 * x

    x, ball, own = inputs(13), Ball(norm="l2", radius=0.5), Quadratic()
    ours = PGD(steps=5)(own, x, ball, rng=seeded(0))
    usual = PGD(steps=5)(lambda x: x.square().sum(1), x, ball, rng=seeded(0))
    torch.testing.assert_close(ours.x, usual.x)
    assert own.calls == 5
    turned = Anti(inner=PGD(steps=5))(own, x, ball, rng=seeded(0))
    assert own.calls == 10
    assert (turned.loss < ours.loss).all()


@pytest.mark.parametrize("attack", EVERY)
def test_a_model_that_lets_no_gradient_through_is_attacked_all_the_same(attack):
    """Attacks by gradient find nothing there, and none of them stumbles."""
    if attack is Exact:
        pytest.skip("Exact is about linear scores")
    x, loss = inputs(3, d=dimension(attack)), loss_for(attack, 3)
    opaque = ModelLoss(lambda points: loss.model(points.detach()), loss.y, loss.loss)
    result = specimen(attack)(opaque, x, Ball(norm="l2", radius=0.5), rng=seeded(0))
    if attack.ascends:
        assert (result.loss >= loss(x) - 1e-12).all()
