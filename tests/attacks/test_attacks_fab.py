"""FAB on networks: against exhaustive search, foolbox, PGD and itself."""

import warnings

import pytest
import torch
from attack_specimens import seeded
from torch import nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # foolbox imports old scipy names
    import foolbox as fb

from advlab.attacks import EAD, FAB, PGD, CarliniWagner, DeepFool
from advlab.losses import ModelLoss, margin
from advlab.threats import Ball

ORDER = {"l1": 1.0, "l2": 2.0, "linf": float("inf")}


@pytest.fixture(scope="module")
def blobs():
    """A small network trained on four noisy clusters in [0, 1]^8, and points it gets right."""
    rng = seeded(0)
    centers = torch.rand(4, 8, generator=rng)
    y = torch.arange(400) % 4
    x = (centers[y] + 0.15 * torch.randn(400, 8, generator=rng)).clamp(0, 1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    right = model(x).argmax(1) == y
    return model.eval(), x[right][:40], y[right][:40]


def circle(seed: int):
    """A random network in the plane, with points whose nearest boundary is not far."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    model[0].weight.data *= 2
    x = torch.randn(12, 2, generator=seeded(seed), dtype=torch.float64)
    return model, x, model(x).argmax(1)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_in_the_plane_it_finds_what_a_fine_grid_finds(norm):
    model, x, y = circle(1)
    axis = torch.linspace(-4, 4, 401, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    label = model(grid).argmax(1)
    attack = FAB(steps=100, restarts=8) if norm == "linf" else FAB(steps=30, restarts=2)
    found = attack.minimum(ModelLoss(model, y, margin), x, norm, rng=seeded(0))
    rivals = [grid[label != own] for own in y]
    moves = [rival - point for rival, point in zip(rivals, x, strict=True)]
    apart = torch.stack([move.norm(ORDER[norm], dim=1).min() for move in moves])
    step = 0.02 * (1 if norm == "linf" else 2)  # a grid point is at most this much further
    assert (found.distance >= apart - step).all()
    # Linf moves go along diagonals, and a walk of these may stop beside the nearest point.
    assert (found.distance <= (1.08 if norm == "linf" else 1.01) * apart).all()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_no_further_than_foolbox(blobs, norm):
    """Mean distances in the box [0, 1] on the same points, from below within three percent."""
    model, x, y = blobs
    theirs, ours = {
        "l1": (fb.attacks.EADAttack(4, steps=200, decision_rule="L1"), EAD(steps=100)),
        "l2": (fb.attacks.L2CarliniWagnerAttack(5, steps=200), CarliniWagner(steps=100)),
        "linf": (fb.attacks.LinfDeepFoolAttack(), DeepFool()),
    }[norm]
    wrapped = fb.PyTorchModel(model, bounds=(0, 1), device="cpu")
    found = theirs.run(wrapped, x, fb.criteria.Misclassification(y))
    reference = (found - x).norm(ORDER[norm], dim=1)
    assert (model(found).argmax(1) != y).all()
    loss = ModelLoss(model, y, margin)
    same = ours.minimum(loss, x, norm, (0.0, 1.0), rng=seeded(0))
    best = FAB(steps=50).minimum(loss, x, norm, (0.0, 1.0), rng=seeded(0))
    assert best.found.all()
    assert same.found.all()
    assert same.distance.mean() < 1.03 * reference.mean()
    assert best.distance.mean() < 1.01 * reference.mean()


def test_it_breaks_what_pgd_breaks_and_says_so_by_distance(blobs):
    model, x, y = blobs
    loss = ModelLoss(model, y, margin)
    distance = FAB(steps=50).minimum(loss, x, "linf", (0.0, 1.0), rng=seeded(0)).distance
    ball = Ball(norm="linf", radius=float(distance.median()), box=(0.0, 1.0))
    pgd = PGD(steps=40, restarts=3)(loss, x, ball, rng=seeded(0)).loss > 0
    fab = FAB(steps=50)(loss, x, ball, rng=seeded(0)).loss > 0
    assert torch.equal(fab, distance <= ball.radius)
    assert int((pgd & ~fab).sum()) <= 1
    assert 15 <= int(fab.sum()) <= 25


def test_targets_and_restarts_never_lengthen(blobs):
    model, x, y = blobs
    loss = ModelLoss(model, y, margin)
    plain, one, all_of_them, again = (
        attack.minimum(loss, x, "l2", (0.0, 1.0), rng=seeded(0)).distance
        for attack in (
            FAB(steps=20),
            FAB(steps=20, targets=1),
            FAB(steps=20, targets=3),
            FAB(steps=20, restarts=3),
        )
    )
    assert (all_of_them <= one + 1e-6).all()
    assert (again <= plain + 1e-6).all()
    assert all_of_them.mean() < 1.01 * plain.mean()


def test_a_targeted_step_costs_one_gradient_and_broken_rows_leave(blobs):
    model, x, y = blobs
    rows = []

    class Counted(nn.Module):
        def forward(self, x):
            rows.append(len(x))
            return model(x)

    loss = ModelLoss(Counted(), y, margin)
    ball = Ball(norm="l2", radius=10.0)
    FAB(steps=30)(loss, x, ball, rng=seeded(0))
    everything = sum(rows)
    assert everything < 10 * len(x)  # all are broken within a few steps, and go
    rows.clear()
    FAB(steps=30).minimum(loss, x, "l2", rng=seeded(0))
    assert sum(rows) > 30 * len(x)
