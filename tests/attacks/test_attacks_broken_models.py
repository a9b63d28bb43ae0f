"""Models that are no numbers somewhere, or edit their inputs: attacks say so, and leave data be."""

import attack_specimens as specimens
import pytest
import torch
from torch import Tensor, nn

import advlab
from advlab.attacks import ATTACKS, PGD, Attack, Identity, SmoothPGD, Surrogate
from advlab.attacks.base import BestSoFar
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, cross_entropy, evaluating, margin
from advlab.threats import Ball

BALL = Ball("linf", 0.2)
X = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(6, 2).clone()
Y = torch.zeros(6, dtype=torch.int64)
MAPS = ("identity", "fixed", "anti", "switch", "transfer", "gta", "fake_signal", "exact")
"""Attacks that do not look for high loss, or are about other models."""


class Cliff(nn.Module):
    """Right by a margin of 1 up to 0.05 from the clean inputs; beyond, its scores are `beyond`."""

    def __init__(self, beyond: float):
        super().__init__()
        self.weight, self.beyond = nn.Parameter(torch.ones(2, dtype=torch.float64)), beyond

    def forward(self, x: Tensor) -> Tensor:
        slope = 1e-3 * (x * self.weight).sum(1)
        scores = torch.stack([slope + 1, -slope], 1)
        far = (x[:, None] - X).abs().amax(2).amin(1) > 0.05
        return scores.masked_fill(far[:, None], self.beyond)


class Overflow(Cliff):
    """The label's own score is infinite beyond, as if it were the safest of answers."""

    def forward(self, x: Tensor) -> Tensor:
        scores = super().forward(x)
        return scores.masked_fill(scores.isnan() & torch.tensor([False, True]), 0.0).nan_to_num(
            torch.inf, torch.inf, -torch.inf
        )


FAR = {"smooth_pgd": SmoothPGD(sigma=0.0), "surrogate": Surrogate(xi=0.0)}
"""Without noise around the clean input, and with whole moves: else they never stand beyond."""


def small(name: str) -> Attack:
    kind = ATTACKS[name]
    return FAR.get(name) or specimens.FEWER.get(kind) or kind()


@pytest.mark.parametrize("beyond", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in MAPS])
def test_not_a_number_is_broken_by_every_attack(name, beyond):
    loss = ModelLoss(Cliff(beyond), Y, margin)
    found = small(name)(loss, X, BALL, rng=0)
    assert bool((found.loss == torch.inf).all())
    assert bool(torch.isfinite(found.x).all())
    assert bool(BALL.contains(found.x, X).all())


@pytest.mark.parametrize("model", [Cliff(float("nan")), Overflow(float("nan"))])
@pytest.mark.parametrize("attack", ["pgd", "fast", PGD(steps=3, early_exit=True)])
def test_evaluate_counts_what_is_not_finite(model, attack):
    result = advlab.evaluate(model, X, Y, BALL, attack)
    assert (result.clean_error, result.robust_error) == (0.0, 1.0)
    counted = [one.text for one in result.check_warnings if one.kind == "not_finite"]
    assert len(counted) == 1
    assert "6 of 6 examples" in counted[0]


def test_finite_models_are_not_warned_of():
    net = specimens.network(0, 2, 2)
    result = advlab.evaluate(net, X, Y, BALL, PGD(steps=2), certificates=())
    assert "not_finite" not in {one.kind for one in result.check_warnings}


def test_a_point_that_is_no_number_is_not_an_answer():
    best = BestSoFar(lambda x: x.sum(1), X)
    best.value(torch.full_like(X, torch.nan))
    assert torch.equal(best.worst.x, X)
    best.note(torch.full_like(X, torch.nan), torch.full((6,), torch.nan, dtype=torch.float64))
    assert torch.equal(best.worst.x, X)


class Edits(nn.Module):
    """Begins with operations in place."""

    def __init__(self):
        super().__init__()
        self.inner = specimens.network(0, 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(2).relu_()
        return self.inner(x)


class Copies(Edits):
    def forward(self, x: Tensor) -> Tensor:
        return self.inner((x * 2).relu())


def results(model: nn.Module, x: Tensor) -> list[Tensor]:
    """What attacks, evaluations and training make of a model."""
    loss = ModelLoss(model, Y, cross_entropy)
    own = PGD(steps=3)(lambda z: cross_entropy(model(z), Y), x, BALL, rng=0)
    evaluated = advlab.evaluate(model, x, Y, BALL, "fast", certificates=())
    short = [Identity()(loss, x, BALL, rng=0).loss, PGD(steps=3)(loss, x, BALL, rng=0).x, own.x]
    errors = torch.tensor([evaluated.clean_error, evaluated.robust_error])
    clean = advlab.fit(model, x, Y, steps=3, lr=0.1).log.losses()
    attacked = advlab.fit(model, x, Y, steps=3, lr=0.1, ball=BALL, rng=0).log.losses()
    return [*short, errors, clean, attacked]


def test_a_model_that_edits_its_input_cannot_touch_the_callers_data():
    x = X.clone()
    expected = results(Copies(), X)
    for found, value in zip(results(Edits(), x), expected, strict=True):
        assert torch.equal(found, value)
    assert torch.equal(x, X)


@pytest.mark.parametrize("verb", ["attack", "evaluate", "fails"])
def test_each_module_comes_back_in_its_own_mode(verb):
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 4), nn.Dropout(), nn.Linear(4, 2)).double()
    net.train()
    net[0].eval()
    before = [module.training for module in net.modules()]
    statistics = net[0].running_mean.clone()
    if verb == "attack":
        PGD(steps=2)(ModelLoss(net, Y, cross_entropy), X, BALL, rng=0)
    elif verb == "evaluate":
        advlab.evaluate(net, X, Y, BALL, "fast")
    else:
        with pytest.raises(AdvlabError), evaluating(net):
            PGD(steps=2)(ModelLoss(net, Y, lambda f, y: f.mean()), X, BALL, rng=0)
    assert [module.training for module in net.modules()] == before
    assert torch.equal(net[0].running_mean, statistics)


def test_arrays_and_lists_give_the_numbers_of_tensors():
    net = specimens.network(0, 2, 2)
    one = advlab.evaluate(net, X, Y, BALL, PGD(steps=2), rng=3)
    two = advlab.evaluate(net, X.numpy(), Y.numpy().astype("uint8"), BALL, PGD(steps=2), rng=3)
    three = advlab.evaluate(net, X.tolist(), Y.tolist(), BALL, PGD(steps=2), rng=3)
    assert one.broken_by == two.broken_by == three.broken_by
    assert one.seed == two.seed == three.seed
    found = PGD(steps=2)(ModelLoss(net, Y.tolist(), "margin"), X.numpy(), BALL, rng=3)
    again = PGD(steps=2)(ModelLoss(net, Y, margin), X, BALL, rng=3)
    assert torch.equal(found.x, again.x)
