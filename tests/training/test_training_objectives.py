"""TRADES and MART against their published formulas, written out in numpy by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from advlab.attacks import FGM, PGD, Fixed
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import cross_entropy, logistic, squared
from advlab.models import Stack
from advlab.threats import Ball
from advlab.training import MART, TRADES, Adversarial, Mixed, StepContext, fit

BALL = Ball(norm="l2", radius=0.5)
OBJECTIVES = (TRADES, MART, Adversarial, Mixed)


def network(seed: int, outputs: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, outputs)).double()


def batch(seed: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(9, 4, generator=rng, dtype=torch.float64)
    if classes == 1:
        return x, 2.0 * torch.randint(0, 2, (9,), generator=rng).double() - 1
    return x, torch.randint(0, classes, (9,), generator=rng)


def context(model, x, y, attack=None, loss=None) -> StepContext:
    loss = loss or (cross_entropy if not y.is_floating_point() else logistic)
    return StepContext(model, x, y, loss, attack or Fixed(), BALL, generator("scene"))


def probabilities(z: torch.Tensor, y: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Softmax, or 1/(1 + e^-f) and the rest, and the column of the label."""
    scores, labels = z.detach().numpy(), y.numpy()
    if scores.shape[1] == 1:
        p = 1 / (1 + np.exp(-scores[:, 0]))
        return np.stack([1 - p, p], 1), ((labels + 1) / 2).astype(int)
    e = np.exp(scores)
    return e / e.sum(1, keepdims=True), labels


def trades_by_hand(p, q, y, beta):
    return [
        -np.log(p[i, k]) + beta * sum(p[i] * (np.log(p[i]) - np.log(q[i]))) for i, k in enumerate(y)
    ]


def mart_by_hand(p, q, y, beta):
    values = []
    for i, k in enumerate(y):
        rival = max(q[i, j] for j in range(q.shape[1]) if j != k)
        boosted = -np.log(q[i, k]) - np.log(1 - rival)
        divergence = sum(p[i, j] * np.log(p[i, j] / q[i, j]) for j in range(q.shape[1]))
        values.append(boosted + beta * divergence * (1 - p[i, k]))
    return values


@pytest.mark.parametrize("classes", [1, 2, 3, 5])
@pytest.mark.parametrize("beta", [0.0, 1.0, 6.0])
@pytest.mark.parametrize(("objective", "by_hand"), [(TRADES, trades_by_hand), (MART, mart_by_hand)])
def test_values_are_those_of_the_published_formula(objective, by_hand, classes, beta):
    model = network(classes, classes)
    x, y = batch(classes, classes)
    one = context(model, x, y)
    ours = objective(ball=BALL, beta=beta).per_example(one)
    p, labels = probabilities(model(x), y)
    q, _ = probabilities(model(one.attacked()), y)
    np.testing.assert_allclose(ours.detach().numpy(), by_hand(p, q, labels, beta), rtol=1e-10)


@pytest.mark.parametrize("objective", [TRADES(ball=BALL, beta=2.0), MART(ball=BALL, beta=2.0)])
@pytest.mark.parametrize("classes", [1, 4])
def test_gradients_flow_through_both_passes(objective, classes):
    """Central differences of the formula in the weights, with the attacked inputs held fixed."""
    model, (x, y) = network(1, classes), batch(1, classes)
    one = context(model, x, y)
    weight = model[0].weight
    _, (grad,) = objective.value_and_grad(one, [weight])
    by_hand = trades_by_hand if isinstance(objective, TRADES) else mart_by_hand

    def value() -> float:
        p, labels = probabilities(model(x), y)
        q, _ = probabilities(model(one.attacked()), y)
        return float(np.mean(by_hand(p, q, labels, 2.0)))

    for i, j in ((0, 0), (3, 2), (6, 1)):
        ends = []
        for step in (1e-5, -1e-5):
            weight.data[i, j] += step
            ends.append(value())
            weight.data[i, j] -= step
        assert float(grad[i, j]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_the_attack_of_trades_climbs_the_divergence_and_the_others_the_loss():
    model, (x, y) = network(2, 3), batch(2, 3)
    walk = PGD(steps=25, step_size=0.25, restarts=5)
    points = {
        type(o).__name__: (one := context(model, x, y, walk), o.per_example(one))[0].attacked()
        for o in (kind(ball=BALL) for kind in OBJECTIVES)
    }
    assert torch.equal(points["MART"], points["Adversarial"])
    assert torch.equal(points["Mixed"], points["Adversarial"])

    def divergence(to: torch.Tensor) -> np.ndarray:
        p, q = (probabilities(model(one), y)[0] for one in (x, to))
        return (p * np.log(p / q)).sum(1)

    assert (divergence(points["TRADES"]) >= (1 - 1e-3) * divergence(points["MART"])).all()
    assert divergence(points["TRADES"]).mean() > 1.01 * divergence(points["MART"]).mean()
    with torch.no_grad():
        losses = [cross_entropy(model(points[o]), y) for o in ("MART", "TRADES")]
    assert (losses[0] >= losses[1] - 1e-9).all()


@pytest.mark.parametrize(
    "objective", [kind(ball=BALL) for kind in (TRADES, MART, Mixed, Adversarial)]
)
def test_attacked_inputs_are_found_once(objective):
    calls = []

    class Counting(FGM):
        def search(self, best, threat, rng):
            calls.append(1)
            super().search(best, threat, rng)

    model, (x, y) = network(3, 3), batch(3, 3)
    one = context(model, x, y, Counting())
    objective.per_example(one)
    assert one.attacked() is one.attacked()
    assert len(calls) == 1


@pytest.mark.parametrize("objective", [TRADES, MART])
@pytest.mark.parametrize("classes", [1, 3])
def test_a_replicate_trains_the_same_alone_and_in_a_stack(objective, classes):
    data = [batch(seed, classes) for seed in range(3)]
    x, y = (torch.stack([pair[part] for pair in data]) for part in (0, 1))
    loss = "logistic" if classes == 1 else "cross_entropy"
    parts = {"loss": loss, "ball": BALL, "attack": PGD(steps=4)}
    settings = {"steps": 8, "lr": 0.3, "objective": objective(**parts)}
    stack = Stack([network(seed, classes) for seed in range(3)])
    rngs = [generator("objective", seed) for seed in range(3)]
    together = fit(stack, x, y, rng=rngs, **settings).log
    alone = fit(network(1, classes), x[1], y[1], rng=generator("objective", 1), **settings).log
    for step in (0, 4, 8):
        assert float(together.loss[step][1]) == pytest.approx(float(alone.loss[step]), rel=1e-9)
    losses = torch.stack(together.loss)
    assert (losses[-1] < losses[0]).all()


@pytest.mark.parametrize("objective", [TRADES(ball=BALL), MART(ball=BALL)])
def test_confident_scores_stay_finite(objective):
    model = nn.Linear(4, 3).double()
    model.weight.data *= 1e3
    x, y = batch(4, 3)
    value, (grad,) = objective.value_and_grad(context(model, x, y), [model.weight])
    assert torch.isfinite(value).all()
    assert torch.isfinite(grad).all()


@pytest.mark.parametrize("objective", [TRADES(ball=BALL), MART(ball=BALL)])
def test_outputs_without_probabilities_are_refused(objective):
    x, _ = batch(0, 1)
    y = torch.linspace(-2, 2, 9, dtype=torch.float64)
    with pytest.raises(AdvlabError, match=r"labels must be -1 or \+1"):
        objective.per_example(context(network(0, 1), x, y, loss=squared))
    with pytest.raises(AdvlabError, match=r"labels must be 0 \.\. 2"):
        objective.per_example(context(network(0, 3), x, torch.full((9,), 3)))
    with pytest.raises(AdvlabError, match="beta"):
        type(objective)(ball=BALL, beta=-1.0)
