"""AutoAttack: its members, whom they are sent to, and the account of what they did."""

import pytest
import torch
from attack_specimens import Recorder, inputs, network, seeded, trained
from torch import nn

from advlab.attacks import APGD, FAB, AutoAttack, Square, autoattack
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, cross_entropy, is_error, logistic, margin, squared
from advlab.models import Stack
from advlab.threats import Ball

QUICK = {"steps": 15, "queries": 40}


def test_the_versions_are_the_published_ones():
    standard, plus, rand = (AutoAttack(v).members() for v in ("standard", "plus", "rand"))
    assert list(standard.values()) == [
        APGD(steps=100, climb="cross_entropy", early_exit=True),
        APGD(steps=100, climb="dlr", target="most_likely", classes=9, early_exit=True),
        FAB(steps=100, targets=9),
        Square(queries=5000),
    ]
    assert [type(one) for one in plus.values()] == [APGD, APGD, FAB, Square, APGD, FAB]
    assert [getattr(one, "restarts", 1) for one in plus.values()] == [5, 5, 5, 1, 1, 1]
    assert [(one.climb, one.draws) for one in rand.values()] == [("cross_entropy", 20), ("dlr", 20)]
    assert AutoAttack() == AutoAttack("standard") == AutoAttack(version="standard")
    assert AutoAttack("plus").key() != AutoAttack().key()
    with pytest.raises(AdvlabError, match="version"):
        AutoAttack("strong")


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_it_breaks_exactly_what_can_be_broken_of_a_linear_model(norm):
    rng = seeded(0)
    x = torch.randn(80, 12, generator=rng, dtype=torch.float64)
    w = torch.randn(12, generator=rng, dtype=torch.float64)
    y = (x @ w + torch.randn(80, generator=rng, dtype=torch.float64)).sign()
    ball = Ball(norm=norm, radius={"l1": 1.0, "l2": 0.5, "linf": 0.15}[norm])
    exact = -y * (x @ w) + ball.radius * ball.dual_norm(w) > 0
    found, results = AutoAttack(**QUICK).run(
        ModelLoss(lambda x: x @ w, y, margin), x, ball, rng=seeded(1)
    )
    assert torch.equal(is_error(found.loss), exact)
    assert 0.1 < exact.double().mean() < 0.9
    assert results[0].broken == int((-y * (x @ w) > 0).sum()) > 0
    assert sum(result.broken for result in results) == int(exact.sum())


@pytest.mark.parametrize("classes", [1, 2, 3, 4, 5, 10])
@pytest.mark.parametrize("version", ["standard", "plus", "rand"])
def test_each_member_is_sent_to_what_the_others_left(version, classes, monkeypatch):
    monkeypatch.setattr(autoattack, "DRAWS", 2)
    x, model = inputs(0, rows=24), Recorder(network(0, classes=classes))
    y = torch.arange(24) % max(2, classes)
    y = 2 * y - 1 if classes == 1 else y
    ball, attack = Ball(norm="linf", radius=0.3), AutoAttack(version, steps=5, queries=10)
    found, results = attack.run(ModelLoss(model, y, margin), x, ball, rng=seeded(0))
    # All but Square's one look for classes.
    assert 0 <= model.rows - sum(result.forwards for result in results) <= 24
    if version == "rand":
        assert results.pop().name == "fresh draws"
    assert [result.name for result in results] == ["clean", *attack.members()]
    left = 24
    for result in results:
        assert result.rows == left
        assert 0 <= result.broken <= result.rows
        left -= result.broken
    with torch.no_grad():
        clean, end = margin(model.model(x), y), margin(model.model(found.x), y)
    assert results[0].broken == int(is_error(clean).sum())
    assert 0 < left < 24
    assert int(is_error(end).sum()) == 24 - left


@pytest.mark.parametrize("classes", [1, 4])
def test_another_loss_meets_the_same_points_if_they_cost_more_than_the_clean_ones(classes):
    x, model = inputs(0, rows=24), network(0, classes=classes)
    y = torch.arange(24) % max(2, classes)
    y, given = (2 * y - 1, logistic) if classes == 1 else (y, cross_entropy)
    ball, attack = Ball(norm="linf", radius=0.3), AutoAttack(steps=5, queries=10)
    found = attack(ModelLoss(model, y, given), x, ball, rng=seeded(0))
    by_margin = attack(ModelLoss(model, y, margin), x, ball, rng=seeded(0)).x
    with torch.no_grad():
        right = margin(model(x), y) < 0
        kept = (given(model(by_margin), y) > given(model(x), y))[:, None]
    assert torch.equal(found.x, torch.where(kept, by_margin, x))
    assert kept[right].double().mean() > 0.8


def test_rows_wrong_at_the_clean_input_are_not_attacked_and_broken_ones_cost_no_more():
    model, x, y = trained(5)
    y[:10] = (y[:10] + 1) % 4
    watched = Recorder(model)
    loss, ball = ModelLoss(watched, y, margin), Ball(norm="l2", radius=50.0)
    found, results = AutoAttack(**QUICK).run(loss, x, ball, rng=seeded(0))
    wrong = is_error(margin(model(x), y))
    assert torch.equal(found.x[wrong], x[wrong])
    assert (is_error(found.loss)).all()
    assert results[0].broken == int(wrong.sum()) >= 8
    assert [result.rows for result in results[2:]] == [results[1].rows - results[1].broken, 0, 0]
    assert results[-1].forwards == 0
    assert sum(len(p) for p in watched.seen[1:]) < 8 * len(x)


def test_it_is_no_weaker_than_its_members():
    model, x, y = trained(6)
    loss, ball = ModelLoss(model, y, margin), Ball(norm="linf", radius=0.4)
    whole = AutoAttack(**QUICK)
    found = is_error(whole(loss, x, ball, rng=seeded(0)).loss)
    for member in whole.members().values():
        alone = is_error(member(loss, x, ball, rng=seeded(0)).loss)
        assert int((alone & ~found).sum()) == 0
    assert 0 < int(found.sum()) < len(x)


def test_losses_without_classes_meet_apgd_and_square():
    x, ball = inputs(1), Ball(norm="l2", radius=0.5)
    target = torch.randn(6, generator=seeded(2), dtype=torch.float64)
    regression = ModelLoss(network(1, classes=1), target, squared)
    own = lambda x: x.square().sum(1)  # noqa: E731
    for loss in (regression, own):
        found, results = AutoAttack(**QUICK).run(loss, x, ball, rng=seeded(0))
        assert [result.name for result in results] == ["clean", "APGD", "Square"]
        assert [result.broken for result in results] == [0, 0, 0]
        assert (found.loss >= APGD(steps=15)(loss, x, ball, rng=seeded(0)).loss).all()
        assert (found.loss > loss(x)).all()


def test_a_stack_keeps_its_rows_and_radius_zero_does_nothing():
    nets = [network(seed) for seed in range(2)]
    x, y, ball = inputs(9), torch.arange(6) % 3, Ball(norm="l2", radius=1.0)
    loss = ModelLoss(Stack(nets), y, margin)
    found, results = AutoAttack(**QUICK).run(loss, x, ball, rng=[seeded(0), seeded(1)])
    assert {result.rows for result in results} == {6}
    broken = int((is_error(found.loss)).sum())
    assert sum(result.broken for result in results) == broken > 0
    still, results = AutoAttack(**QUICK).run(loss, x, ball.with_radius(0.0), rng=seeded(0))
    assert torch.equal(still.x, x)
    assert [result.forwards for result in results] == [6, 0, 0, 0, 0]
    assert sum(result.broken for result in results) == results[0].broken


@pytest.mark.parametrize("score", [0.0, float("nan")])
def test_ties_and_what_is_no_number_are_errors(score):
    loss = ModelLoss(lambda x: x.new_full((len(x), 3), score), torch.zeros(10).long(), margin)
    found, results = AutoAttack(**QUICK).run(
        loss, inputs(0, rows=10), Ball(norm="linf", radius=0.1), rng=seeded(0)
    )
    assert bool(is_error(found.loss).all())
    assert [result.broken for result in results] == [10, 0, 0, 0, 0]
    assert [result.rows for result in results] == [10, 0, 0, 0, 0]


def test_the_random_version_beats_single_draws_on_a_random_model():
    """A model that adds much noise to its input: single gradients mislead, their mean does not."""

    class Noisy(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x + 1.5 * torch.randn_like(x))

    model, x, y = trained(7)
    loss, ball = ModelLoss(Noisy(model), y, margin), Ball(norm="l2", radius=0.8)
    torch.manual_seed(0)

    def mean_margin(attack):
        found = attack(loss, x, ball, rng=seeded(0)).x
        with torch.no_grad():
            return float(torch.stack([loss(found) for _ in range(200)]).mean())

    single = AutoAttack("rand", steps=20).members()["APGD DLR"].model_copy(update={"draws": 1})
    assert mean_margin(AutoAttack("rand", steps=20)) > mean_margin(single) + 0.1
