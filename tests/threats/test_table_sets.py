"""Categories, whole steps, products, unions and patches: other answers, attacks, certificates."""

import itertools

import numpy as np
import pytest
import torch
from threat_specimens import one_hot, threat_and_center
from torch import nn

import advlab
from advlab.attacks import APGD, FAB, FGM, PGD, CoordinateAscent, Square
from advlab.certify import certify
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, margin
from advlab.threats import Ball, FeatureBall, Integers, OneHot, Patch, Product, Union

TABLE = Product(
    [
        (range(0, 4), FeatureBall("l2", [0.5, 0.5, 1.0, 0.0])),
        ([4], Integers(2.0, low=0.0)),
        (range(5, 12), OneHot([[0, 1, 2, 3], [4, 5, 6]])),
    ]
)


def table(rows: int, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    numbers, counts = rng.normal(size=(rows, 4)), rng.integers(0, 6, (rows, 1))
    return torch.tensor(np.concatenate([numbers, counts, one_hot(rng, rows, 4, 3)], 1))


def network(features: int, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    layers = [nn.Flatten(), nn.Linear(features, 12), nn.ReLU(), nn.Linear(12, 3)]
    return nn.Sequential(*layers).double()


def test_a_patch_is_the_union_of_masked_balls():
    patch = Patch((2, 3), (2, 4, 5), 0.4)
    masks = []
    for top, left in itertools.product(range(3), range(3)):
        mask = np.zeros((2, 4, 5), dtype=bool)
        mask[:, top : top + 2, left : left + 3] = True
        masks.append(FeatureBall("linf", 0.4, low=0.0, high=1.0, mask=mask))
    union = Union(masks)
    center = torch.rand(6, 2, 4, 5, generator=torch.Generator().manual_seed(0)).double()
    point = center + torch.randn(center.shape, generator=torch.Generator().manual_seed(1)).double()
    for name in ("project", "maximiser", "support"):
        ours, theirs = (getattr(one, name)(point, center) for one in (patch, union))
        torch.testing.assert_close(ours, theirs)
    two = center.clone()
    two[:, :, 0, 0], two[:, :, 3, 4] = 0.5, 0.5
    for where in (patch.sample(center, rng=torch.Generator()), two):
        assert torch.equal(patch.contains(where, center), union.contains(where, center))


def test_a_budget_is_the_union_over_the_choices_of_groups():
    parts = [(range(2 * k, 2 * k + 2), Ball("l2", 0.2 * (k + 1))) for k in range(4)]
    few = Product(parts, changes=2)
    union = Union([Product(list(two)) for two in itertools.combinations(parts, 2)])
    center = torch.randn(6, 9, generator=torch.Generator().manual_seed(0)).double()
    point = center + torch.randn(6, 9, generator=torch.Generator().manual_seed(1)).double()
    for name in ("project", "maximiser", "support"):
        ours, theirs = (getattr(one, name)(point, center) for one in (few, union))
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("kind", ["one_hot", "table", "few_steps", "integers", "union", "patch"])
def test_attacks_end_inside_and_find_something(kind):
    threat, x = threat_and_center(kind, 4)
    net = network(x[0].numel())
    loss = ModelLoss(net, net(x).argmax(1), margin)
    for attack in (FGM(), PGD(), APGD(steps=10), Square(queries=30), FAB(steps=5)):
        found = attack(loss, x, threat, rng=0)
        assert threat.contains(found.x, x).all()
        assert (found.loss >= loss(x)).all()
        if isinstance(attack, PGD | APGD | Square):
            assert (found.loss > loss(x)).any()


def test_coordinate_ascent_is_exact_in_small_sets_and_never_below_its_inner_attack():
    rng = np.random.default_rng(0)
    x = torch.tensor(one_hot(rng, 30, 4, 4, 4))
    threat = OneHot([range(0, 4), range(4, 8), range(8, 12)], radius=2)
    net = network(12, seed=2)
    loss = ModelLoss(net, net(x).argmax(1), margin)
    points = [np.concatenate([np.eye(4)[list(one)]], 1).reshape(-1) for one in
              itertools.product(range(4), repeat=3)]  # fmt: skip
    every = torch.tensor(np.stack(points))
    near = (every[None] - x[:, None]).abs().sum(2) <= 4
    with torch.no_grad():
        values = torch.stack([loss(one.expand_as(x)) for one in every], 1)
    worst = torch.where(near, values, -torch.inf).amax(1)
    found = CoordinateAscent()(loss, x, threat, rng=0)
    torch.testing.assert_close(found.loss, worst)
    inner = PGD(steps=5)
    greedy = CoordinateAscent(inner=inner, exhaustive=0)(loss, x, threat, rng=0)
    before = inner(loss, x, threat, rng=0)
    assert (greedy.loss >= before.loss).all()
    assert (greedy.loss > before.loss).any()
    gap, gain = worst - greedy.loss, worst - loss(x).detach()
    assert float(gap.mean()) < 0.05 * float(gain.mean())


def test_square_in_a_ball_of_unequal_radii_searches_the_ball_itself():
    """It used to search a plain ball, and only its last point was brought back."""
    weights = torch.tensor([2.0, 0.1, 0.1, 0.0])
    x = torch.zeros(3, 4)
    found = Square(queries=120)(lambda x: x @ weights, x, FeatureBall("l2", [0.1, 1, 1, 1]), rng=0)
    best = FeatureBall("l2", [0.1, 1, 1, 1]).support(weights.expand(3, 4), x)
    assert (found.loss > 0.85 * best).all()


ONE_GROUP = Product(list(zip(TABLE.columns, TABLE.parts, strict=True)), changes=1)


@pytest.mark.parametrize("threat", [TABLE, ONE_GROUP, Union([ONE_GROUP, TABLE.with_radius(1.0)])])
def test_a_table_is_attacked_evaluated_and_certified(threat):
    x, net = table(10), network(12)
    with torch.no_grad():
        net[1].weight *= 0.3
        net[3].bias[0] += 0.4
        y = net(x).argmax(1)
    search = CoordinateAscent(inner=PGD(steps=5), rounds=2, tries=8)
    adv = advlab.attack(net, x, y, threat, search, quiet=True)
    assert threat.contains(adv.x, x).all()
    proved = certify(net, x, y, threat)
    assert (proved.bound >= adv.loss - 1e-9).all()
    assert not bool((proved.robust & adv.broken).any())
    found = advlab.evaluate(net, x, y, threat, PGD(steps=5), checks=False)
    assert found.robust_error <= found.certified_error < 1.0


def test_certificates_see_that_categories_exclude_each_other():
    """A swap within a group costs its old category: the box around the group does not know that."""
    x, linear = torch.tensor(one_hot(np.random.default_rng(0), 6, 3, 3)), nn.Linear(6, 2).double()
    y = linear(x).argmax(1)
    threat = OneHot([[0, 1, 2], [3, 4, 5]], radius=1)
    exact = CoordinateAscent()(ModelLoss(linear, y, margin), x, threat, rng=0).loss
    bound = certify(linear, x, y, threat, ["linear"]).bound
    torch.testing.assert_close(bound, exact, atol=1e-9, rtol=0)
    box = certify(linear, x, y, FeatureBall("linf", 1.0, low=0.0, high=1.0), ["linear"]).bound
    assert (box > bound + 1e-3).all()


def test_a_patch_is_attacked_evaluated_and_certified():
    x, net = torch.rand(6, 1, 5, 5, dtype=torch.float64), network(25)
    y = net(x).argmax(1)
    patch = Patch((2, 2), (1, 5, 5), 0.5)
    adv = advlab.attack(net, x, y, patch, PGD(restarts=4), quiet=True)
    changed = (adv.x != x)[:, 0]
    assert changed.any()
    assert ((changed.any(2).sum(1) <= 2) & (changed.any(1).sum(1) <= 2)).all()
    assert (certify(net, x, y, patch).bound >= adv.loss - 1e-9).all()
    result = advlab.evaluate(net, x, y, patch, PGD(steps=5), checks=True)
    assert result.robust_error <= result.certified_error


def test_sets_are_settings_with_keys_of_their_own():
    ball, slab = Ball("l2", 1.0), FeatureBall("l2", 1.0)
    keys = {Product([([0], one)]).key() for one in (ball, slab, Ball("l2", 2.0))}
    assert len({*keys, Product([([1], ball)]).key(), Product([([0], ball)], changes=0).key()}) == 5
    assert Union([ball, slab]).key() != Union([slab, ball]).key()
    assert TABLE.radius == 2.0
    half = TABLE.with_radius(1.0)
    assert [part.radius for part in half.parts] == [0.5, 1.0, 0.5]
    assert half.with_radius(2.0) == TABLE
    assert OneHot([[0, 1]], 1.7).changes == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: OneHot([[0]]), "two columns or more"),
        (lambda: OneHot([[0, 1], [1, 2]]), "different columns"),
        (lambda: OneHot([[0, 1]], allowed=[2]), "allowed columns among"),
        (lambda: OneHot([[0, 1]], radius=-1), "radius"),
        (lambda: Integers(1.0, step=0.0), "steps above 0"),
        (lambda: Integers([1.0, 1.0], step=[1.0] * 3), "as many features"),
        (lambda: Product([([0], Ball("l2", 1.0)), ([0], Ball("l2", 1.0))]), "column 0 twice"),
        (lambda: Product([([0], 0.3)]), "parts that are threat sets; got 0.3"),
        (lambda: Product([Ball("l2", 1.0)]), "pairs of columns"),
        (lambda: Product([(3, Ball("l2", 1.0))]), "a range or a list"),
        (lambda: Product([]), "one threat set per group"),
        (lambda: Union([]), "at least one threat set"),
        (lambda: Union([0.1]), "a list of threat sets"),
        (lambda: Patch((9, 1), (1, 8, 8)), "a window inside images"),
        (lambda: OneHot([[0, 1]]).check_center(torch.full((2, 2), 0.5)), r"one 1 among .*row 0"),
        (lambda: OneHot([[0, 9]]).check_center(torch.zeros(1, 2)), "at least 10 features"),
        (lambda: TABLE.check_center(torch.zeros(1, 12)), r"columns 5, 6, 7.*one 1 among"),
        (lambda: Patch((1, 1), (1, 2, 2)).check_center(torch.zeros(1, 5)), "images of shape"),
        (lambda: Integers([1.0, 0.0]).check_center(torch.zeros(1, 3)), "2 features"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(make, words):
    with pytest.raises(AdvlabError, match=words) as refused:
        make()
    assert "\n" not in str(refused.value)
