"""Square: squares and groups, what leaves the batch, and how near it comes to gradients."""

import pytest
import torch
from attack_specimens import inputs, losses, network, seeded
from torch import nn

from advlab.attacks import PGD, Exact, Grid, Random, Square
from advlab.attacks._engine.queries import Query
from advlab.attacks._engine.square_windows import Groups, Squares, windows
from advlab.attacks.base import BestSoFar
from advlab.losses import ModelLoss, cross_entropy, logistic, margin, squared
from advlab.threats import Ball, Cap

NORMS = ["l1", "l2", "linf"]


def sure(rows: int, d: int = 12):
    """A linear score that no move of the tests can turn: nothing leaves."""
    w = torch.randn(d, generator=seeded(1), dtype=torch.float64)
    x = torch.rand(rows, d, generator=seeded(2), dtype=torch.float64)
    return w, x, ModelLoss(lambda x: x.flatten(1) @ w + 100, torch.ones(rows).double(), margin)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("shape", "box"), [((12,), None), ((1, 3, 4), (0.0, 1.0)), ((3, 2, 2), None)]
)
def test_near_the_worst_case_of_a_linear_model(norm, shape, box):
    w, x, loss = sure(6)
    ball = Ball(norm=norm, radius={"l1": 1.0, "l2": 0.5, "linf": 0.1}[norm], box=box)
    best = Exact()(loss, x, ball, rng=seeded(0)).loss + 100 + x @ w
    shaped = x.reshape(6, *shape)
    found = Square(queries=600)(loss, shaped, ball, rng=seeded(0)).loss + 100 + x @ w
    guess = Random(samples=600)(loss, x, ball, rng=seeded(0)).loss + 100 + x @ w
    assert (found <= best + 1e-9).all()
    assert float((found / best).mean()) > {"l1": 0.85, "l2": 0.93, "linf": 0.999}[norm]
    assert found.mean() > guess.mean()


@pytest.mark.parametrize("threat", [Cap(radius=0.5), Ball(norm="l2", radius=0.5)], ids=str)
def test_in_two_dimensions_it_finds_the_maximum(threat):
    model = network(4, d=2)
    x = inputs(4, threat, d=2)
    loss = ModelLoss(model, torch.tensor([0, 1, 2, 0, 1, 2]), cross_entropy)
    best = Grid(points=2000, refinements=20)(loss, x, threat, rng=seeded(0)).loss
    found = Square(queries=500, climb_margin=False)(loss, x, threat, rng=seeded(0)).loss
    assert (found <= best + 1e-3).all()
    assert float((best - found).max()) < 0.01 * float((best - loss(x).detach()).max())


def test_windows_are_squares_of_every_channel_inside_the_image():
    best = BestSoFar(lambda x: x.sum((1, 2, 3)), torch.zeros(400, 3, 6, 8))
    query = Query(best, seeded(0), climb_margin=False)
    where = windows((3, 6, 8), squares=True)
    assert isinstance(where, Squares)
    index, sign = where.draw(query, 3)
    assert index.shape == (400, 3, 9)
    assert sign.shape == (400, 3, 1)
    marked = torch.zeros(400, 144).scatter(1, index.flatten(1), 1.0).reshape(400, 3, 6, 8)
    assert (marked.sum((2, 3)) == 9).all()
    assert torch.equal(marked.amax(3).sum(2), torch.full((400, 3), 3.0))
    assert torch.equal(marked.amax(2).sum(2), torch.full((400, 3), 3.0))
    assert (marked.amax(0) == 1).all()  # every pixel is in some window
    assert set(sign.flatten().tolist()) == {-1.0, 1.0}
    assert where.size(0.8) == 6
    assert where.size(1e-9) == 1


def test_groups_hold_different_coordinates_and_reach_them_all():
    best = BestSoFar(lambda x: x.sum(1), torch.zeros(60, 10))
    query = Query(best, seeded(0), climb_margin=False)
    where = windows((10,), squares=True)
    assert isinstance(where, Groups)
    for size in (1, 4, 10):
        index, _ = where.draw(query, size)
        marked = torch.zeros(60, 10).scatter(1, index.flatten(1), 1.0)
        assert (marked.sum(1) == size).all()
        assert (marked.amax(0) == 1).all()
    assert isinstance(windows((1, 5, 2), squares=False), Groups)


@pytest.mark.parametrize("norm", NORMS)
def test_broken_rows_leave_and_others_use_all_their_queries(norm):
    seen: list[int] = []

    class Counted(nn.Module):
        def forward(self, x):
            seen.append(len(x))
            return x.flatten(1).sum(1)

    x = torch.cat([torch.full((7, 1, 4, 4), 1e-3), torch.full((3, 1, 4, 4), 9.0)])
    loss = ModelLoss(Counted(), torch.ones(10), logistic)
    result = Square(queries=50)(loss, x, Ball(norm=norm, radius=0.5), rng=seeded(0))
    assert torch.equal(loss.climbing(margin)(result.x) > 0, torch.arange(10) < 7)
    *seen_by_attack, _ = seen
    assert len(seen_by_attack) == 3 + 50 + 1  # the clean ones, the queries, the answer
    assert seen_by_attack[-2:] == [3, 10]
    assert seen_by_attack[:-1] == sorted(seen_by_attack[:-1], reverse=True)
    seen.clear()
    never = Square(queries=50, climb_margin=False)
    never(loss, x, Ball(norm=norm, radius=0.5), rng=seeded(0))
    assert set(seen) == {10}


def test_it_asks_for_no_gradient_and_takes_any_loss():
    class Stair(nn.Module):
        def forward(self, x):
            return (8 * x).round().sum(1)

    x = torch.rand(5, 6, generator=seeded(0))
    ball = Ball(norm="linf", radius=0.25)
    loss = ModelLoss(Stair(), 3 * torch.rand(5, generator=seeded(1)), squared)
    flat = PGD(random_start=False)(loss, x, ball, rng=seeded(0)).loss
    found = Square(queries=300)(loss, x, ball, rng=seeded(0)).loss
    assert (found > flat).all()
    plain = Square(queries=300)(lambda x: loss(x), x, ball, rng=seeded(0)).loss
    assert torch.equal(plain, found)


def test_restarts_never_hurt_and_shares_halve_on_schedule():
    loss, x = losses(10)[False], inputs(10)
    ball = Ball(norm="l2", radius=0.3)
    one = Square(queries=30)(loss, x, ball, rng=seeded(0)).loss
    three = Square(queries=30, restarts=3)(loss, x, ball, rng=seeded(0)).loss
    assert (three >= one).all()
    attack = Square(queries=10_000)
    shares = [attack.share_after(k) for k in (10, 11, 51, 201, 501, 1001, 2001, 4001, 6001, 8001)]
    assert shares == [0.8 / 2**k for k in range(10)]
