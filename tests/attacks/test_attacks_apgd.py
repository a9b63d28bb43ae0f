"""APGD and its parts: step rules, what is climbed, targets, rows that leave."""

import pytest
import torch
from attack_specimens import Recorder, inputs, losses, network, seeded, trained
from torch import nn

from advlab.attacks import APGD, MIM, PGD, Grid
from advlab.attacks._engine.step_sizes import AscentState, HalvingSteps, SparseSteps, checkpoints
from advlab.attacks._engine.targets import target_classes
from advlab.attacks.base import BestSoFar
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, cross_entropy, dlr, logistic, margin, squared
from advlab.models import Stack
from advlab.threats import Ball

NORMS = ["l1", "l2", "linf"]
LABELLED = ["cross_entropy", "dlr", "margin"]


def test_checkpoints_are_the_published_ones():
    assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]
    assert checkpoints(10) == [3, 5, 6, 7, 8, 9, 10]


def test_sizes_halve_where_a_climb_is_slow_or_stuck_and_only_there():
    zeros, ball = torch.zeros(3, 2), Ball(norm="linf", radius=0.5)
    rule = HalvingSteps(ball, zeros[:, 0], steps=100)
    seen = AscentState.at(zeros, torch.zeros(3), torch.ones(3, 2))
    for step in range(1, 42):
        # Row 0 always rises, row 1 rises in half of the steps, row 2 never moves.
        value = torch.tensor([float(step), float(step % 2), 0.0])
        seen.advance(seen.point + 0.1, value, seen.grad)
        back = rule.update(step, seen)
        if step == 22:
            assert back.tolist() == [False, True, True]
            assert rule.size.tolist() == [1.0, 0.5, 0.5]
            seen.restart_from_best(back)
            assert seen.value.tolist() == [22.0, 1.0, 0.0]
            torch.testing.assert_close(seen.point[1], torch.full((2,), 0.1))
            assert torch.equal(seen.point[2], zeros[2])
        elif step < 41:
            assert back is None
    assert rule.size.tolist() == [1.0, 0.25, 0.25]


def test_a_climb_whose_best_stands_still_halves_though_most_steps_rise():
    rule = HalvingSteps(Ball(norm="l2", radius=1.0), torch.zeros(1), steps=100)
    seen = AscentState.at(torch.zeros(1, 2), torch.zeros(1), torch.ones(1, 2))
    sizes = {}
    for step in range(1, 71):
        value = torch.tensor([float(step)]) if step <= 22 else torch.tensor([-100.0 + step])
        seen.advance(seen.point, value, seen.grad)
        rule.update(step, seen)
        sizes[step] = float(rule.size)
    # Not twice in a row: after a halving the climb has one more stretch of steps to prove itself.
    assert [sizes[step] for step in (22, 41, 57, 70)] == [2.0, 1.0, 1.0, 0.5]


@pytest.mark.parametrize("d", [1, 5, 40])
def test_sparse_steps_use_the_largest_entries_and_spend_their_size(d):
    center = torch.zeros(4, d, dtype=torch.float64)
    rule = SparseSteps(Ball(norm="l1", radius=0.7), center, steps=100)
    grad = torch.randn(4, d, generator=seeded(0), dtype=torch.float64)
    move = rule.move(grad)
    count = max(1, int(0.2 * d))
    torch.testing.assert_close(move.abs().sum(1), torch.full_like(move[:, 0], 0.7))
    assert (move.count_nonzero(dim=1) == count).all()
    for row, step in zip(grad, move, strict=True):
        assert set(step.nonzero().flatten().tolist()) == set(row.abs().topk(count).indices.tolist())
        assert (step * row >= 0).all()
    assert torch.equal(rule.move(torch.zeros_like(grad)), torch.zeros_like(grad))


@pytest.mark.parametrize("box", [None, (-1.0, 1.0)])
@pytest.mark.parametrize("norm", NORMS)
def test_it_finds_the_worst_point_of_plane_problems(norm, box):
    """Against a dense grid on rough networks of two inputs, every row."""
    for seed in range(2):
        model = network(seed, d=2)
        model[0].weight.data *= 3
        x = inputs(seed, rows=8, d=2).clamp(-1, 1)
        loss = ModelLoss(model, torch.arange(8) % 3, cross_entropy)
        ball = Ball(norm=norm, radius=0.6, box=box)
        best = Grid(points=100)(loss, x, ball, rng=seeded(0)).loss
        found = APGD(steps=25, restarts=6)(loss, x, ball, rng=seeded(0)).loss
        assert (found >= best - 5e-3).all()


@pytest.mark.parametrize("norm", NORMS)
def test_it_is_no_worse_than_pgd_of_the_same_budget(norm):
    radius = {"l1": 12.0, "l2": 4.0, "linf": 0.8}[norm]
    for seed in range(2):
        model, x, y = trained(seed, d=40)
        loss, ball = ModelLoss(model, y, margin), Ball(norm=norm, radius=radius)
        found = APGD(steps=50)(loss, x, ball, rng=seeded(0)).loss
        for size in (0.05, 0.2, 0.5):
            plain = PGD(steps=50, step_size=size)(loss, x, ball, rng=seeded(0)).loss
            assert found.mean() >= plain.mean() - 1e-3
            assert (found > 0).sum() >= (plain > 0).sum()


@pytest.mark.parametrize("attack", [PGD(steps=6), MIM(steps=6), APGD(steps=6)], ids=str)
@pytest.mark.parametrize("climb", LABELLED)
@pytest.mark.parametrize("target", [None, "most_likely"])
def test_another_climb_costs_no_run_of_the_model_and_keeps_the_worst_by_the_given_loss(
    attack, climb, target
):
    def calls(**settings):
        model = Recorder(network(3, classes=5))
        y = torch.randint(0, 5, (6,), generator=seeded(3))
        loss = ModelLoss(model, y, cross_entropy)
        one = {"classes": 1} if isinstance(attack, APGD) else {}
        changed = attack.model_copy(update={**one, **settings})
        found = changed(loss, inputs(3), Ball(norm="l2", radius=1.0), rng=seeded(0))
        seen = list(model.seen)
        with torch.no_grad():
            worst = torch.stack([loss(x) for x in seen]).amax(0)
        torch.testing.assert_close(found.loss, worst, rtol=0, atol=0)
        return len(seen)

    assert calls(climb=climb, target=target) == calls() + (target is not None)


def test_each_climb_goes_its_own_way():
    x, ball = inputs(4), Ball(norm="l2", radius=2.0)
    loss = ModelLoss(network(4, classes=5), torch.arange(6) % 5, cross_entropy)
    ends = [APGD(steps=5, climb=c)(loss, x, ball, rng=seeded(0)).x for c in ["given", *LABELLED]]
    assert torch.equal(ends[0], ends[1])
    for i in range(1, 4):
        for j in range(i):
            assert torch.equal(ends[i], ends[j]) == ((j, i) == (0, 1))


@pytest.mark.parametrize("attack", [PGD, MIM, APGD])
def test_losses_without_classes_are_climbed_themselves(attack):
    x, ball = inputs(5), Ball(norm="linf", radius=0.5)
    target = torch.randn(6, generator=seeded(6), dtype=torch.float64)
    regression = ModelLoss(network(5, classes=1), target, squared)
    own = lambda x: x.square().sum(1)  # noqa: E731
    for loss in (regression, own):
        plain = attack(steps=8)(loss, x, ball, rng=seeded(0))
        other = attack(steps=8, climb="dlr", target="random", early_exit=True)
        assert torch.equal(other(loss, x, ball, rng=seeded(0)).x, plain.x)
        assert (plain.loss > loss(x)).all()


def test_one_output_and_two_classes_take_every_climb_and_target():
    x, ball = inputs(6), Ball(norm="l2", radius=1.0)
    sign = torch.tensor([1.0, -1, 1, -1, 1, -1]).double()
    one = ModelLoss(network(6, classes=1), sign, logistic)
    two = ModelLoss(network(6, classes=2), torch.arange(6) % 2, cross_entropy)
    for loss in (one, two):
        best = APGD(steps=30)(loss, x, ball, rng=seeded(0)).loss
        for climb in LABELLED:
            found = APGD(steps=30, climb=climb, target="most_likely")(loss, x, ball, rng=seeded(0))
            torch.testing.assert_close(found.loss, best, rtol=1e-3, atol=1e-3)


def test_targets_are_who_they_say():
    z = torch.tensor([[4.0, 3, 2, 1], [1.0, 2, 3, 4]])
    y = torch.tensor([0, 1])
    named = {
        "most_likely": [[1, 3], [2, 2], [3, 0]],
        "least_likely": [[3, 0], [2, 2], [1, 3]],
        2: [[2, 2]],
        (1, 0): [[1, 0]],
    }
    for which, expected in named.items():
        assert target_classes(which, z, y, 9, seeded(0)).tolist() == expected
    assert target_classes("most_likely", z, y, 2, seeded(0)).shape == (2, 2)
    many = torch.zeros(1000, 4)
    drawn = target_classes("random", many, torch.full((1000,), 3), 1, seeded(0))[0]
    assert drawn.bincount(minlength=4).tolist()[3] == 0
    assert min(drawn.bincount(minlength=4).tolist()[:3]) > 270
    with pytest.raises(AdvlabError, match="below 4 for each of 2 rows"):
        target_classes(4, z, y, 1, seeded(0))
    for attack in (PGD, APGD):
        with pytest.raises(AdvlabError, match="a climb that knows classes"):
            attack(target="random")


@pytest.mark.parametrize("climb", LABELLED)
def test_a_target_is_reached_where_the_set_is_large(climb):
    x, y = inputs(7), torch.zeros(6, dtype=torch.long)
    model = network(7, classes=4)
    ball = Ball(norm="l2", radius=20.0)
    for target in (1, 2, 3):
        own = ModelLoss(model, torch.full((6,), target), lambda z, t: -margin(z, t))
        wanted = PGD(steps=40, step_size=0.05)(own, x, ball, rng=seeded(0))
        best = BestSoFar(ModelLoss(Recorder(model), y, cross_entropy), x)
        APGD(steps=40, climb=climb, target=target).search(best, ball, seeded(0))
        reached = torch.stack([model(p).argmax(1) == target for p in best.loss.model.seen]).any(0)
        assert (reached | (wanted.loss < 0)).all()
        assert reached.any()


def test_all_other_classes_are_tried_but_no_more_than_asked_for():
    for classes, asked, walks in ((3, 9, 2), (5, 9, 4), (5, 2, 2), (2, 9, 1)):
        model = Recorder(network(8, classes=classes))
        loss = ModelLoss(model, torch.zeros(6, dtype=torch.long), cross_entropy)
        attack = APGD(steps=3, climb="dlr", target="most_likely", classes=asked)
        attack(loss, inputs(8), Ball(norm="l2", radius=0.1), rng=seeded(0))
        # Each walk: three steps, its start, its jump; once the clean inputs, once for targets.
        assert len(model.seen) == walks * 5 + 2


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", [PGD, MIM, APGD])
def test_rows_leave_when_broken_and_the_same_rows_break(kind, norm):
    model, x, y = trained(3)
    y[:4] = (y[:4] + 1) % 4
    ball = Ball(norm=norm, radius={"l1": 1.5, "l2": 0.8, "linf": 0.4}[norm])
    counts, broken = [], []
    for early in (False, True):
        watched = Recorder(model)
        attack = kind(steps=20, random_start=False, early_exit=early, climb="cross_entropy")
        found = attack(ModelLoss(watched, y, margin), x, ball, rng=seeded(0))
        counts.append(watched.rows)
        broken.append(found.loss > 0)
        torch.testing.assert_close(found.loss, margin(model(found.x), y).detach())
    assert torch.equal(*broken)
    assert 0.3 < broken[0].double().mean() < 1
    assert counts[1] < 0.75 * counts[0]
    clean = margin(model(x), y) > 0
    assert clean.any()
    assert torch.equal(found.x[clean], x[clean])


def test_all_rows_may_leave_and_later_starts_are_spared():
    model, x, y = trained(3)
    watched = Recorder(model)
    loss, ball = ModelLoss(watched, y, margin), Ball(norm="l2", radius=50.0)
    for kind in (PGD, APGD):
        found = kind(steps=30, restarts=4, early_exit=True)(loss, x, ball, rng=seeded(0))
        assert (found.loss > 0).all()
    assert watched.rows < 10 * len(x)


def test_stacks_keep_their_rows():
    nets = [network(seed) for seed in range(2)]
    x, y = inputs(9), torch.arange(6) % 3
    ball, stack = Ball(norm="l2", radius=1.0), Stack(nets)
    for kind in (PGD, APGD):
        attack = kind(steps=8, early_exit=True)
        found = attack(ModelLoss(stack, y, margin), x, ball, rng=[seeded(0), seeded(1)])
        for r, net in enumerate(nets):
            rows = slice(3 * r, 3 * r + 3)
            alone = attack.model_copy(update={"early_exit": False})(
                ModelLoss(net, y[rows], margin), x[rows], ball, rng=seeded(r)
            )
            torch.testing.assert_close(found.x[rows], alone.x)


def test_draws_average_a_random_model():
    """x.w + x.noise with fresh noise a call: the mean of many draws finds what one misses."""
    torch.manual_seed(0)
    w = torch.randn(30, dtype=torch.float64)

    class Noisy(nn.Module):
        def forward(self, x):
            return x @ (w + 6 * torch.randn(30, dtype=torch.float64))

    x, y = torch.zeros(20, 30, dtype=torch.float64), torch.ones(20).double()
    loss, ball = ModelLoss(Noisy(), y, logistic), Ball(norm="l2", radius=1.0)
    reached = [
        float((APGD(steps=5, draws=draws)(loss, x, ball, rng=seeded(0)).x @ w).mean())
        for draws in (1, 100)
    ]
    assert reached[1] < reached[0] - 1
    assert reached[1] < -0.6 * float(w.norm())


@pytest.mark.parametrize("norm", NORMS)
def test_mim_follows_its_formula(norm):
    x, ball = inputs(10), Ball(norm=norm, radius=0.5)
    loss = losses(10)[False]
    memory, point = torch.zeros_like(x), x
    for _ in range(4):
        point = point.detach().requires_grad_()
        (grad,) = torch.autograd.grad(loss(point).sum(), point)
        memory = 0.7 * memory + grad / grad.abs().sum(1, keepdim=True)
        point = ball.project(point.detach() + 0.1 * 0.5 * ball.steepest(memory), x)
    walk = MIM(steps=4, decay=0.7, keep="last", jump=False)
    torch.testing.assert_close(walk(loss, x, ball, rng=seeded(0)).x, point)


def test_the_last_point_is_kept_where_asked_for_and_whole_ascents_only():
    x, ball = torch.zeros(1, 1), Ball(norm="linf", radius=1.0)
    bump = lambda x: -((x[:, 0] - 0.15) ** 2)  # noqa: E731
    settings = {"steps": 3, "random_start": False, "jump": False}
    worst = PGD(**settings)(bump, x, ball, rng=seeded(0))
    last = PGD(**settings, keep="last")(bump, x, ball, rng=seeded(0))
    assert float(worst.x) in (pytest.approx(0.1), pytest.approx(0.2))
    assert float(last.x) == pytest.approx(0.1)
    far = PGD(**{**settings, "step_size": 0.9}, keep="last")(bump, x, ball, rng=seeded(0))
    assert float(far.loss) < float(bump(x))
    for extra in ({"restarts": 2}, {"early_exit": True}, {"jump": True}):
        with pytest.raises(AdvlabError, match="one whole ascent"):
            PGD(**{**settings, **extra}, keep="last")


def test_a_random_start_below_the_clean_loss_does_not_win():
    x, ball = torch.zeros(50, 3), Ball(norm="l2", radius=1.0)
    peak = lambda x: -x.square().sum(1)  # noqa: E731
    for attack in (PGD(steps=1, jump=False), APGD(steps=1)):
        assert torch.equal(attack(peak, x, ball, rng=seeded(0)).x, x)


def test_dlr_is_climbed_by_its_own_gradient():
    x, ball = inputs(11), Ball(norm="linf", radius=0.1)
    model, y = network(11, classes=4), torch.arange(6) % 4
    leaf = x.clone().requires_grad_()
    (grad,) = torch.autograd.grad(dlr(model(leaf), y).sum(), leaf)
    walk = PGD(steps=1, step_size=1.0, random_start=False, jump=False, keep="last", climb="dlr")
    found = walk(ModelLoss(model, y, cross_entropy), x, ball, rng=seeded(0))
    torch.testing.assert_close(found.x, x + 0.1 * grad.sign())
