"""Minimum-norm attacks: planes against a convex solver, distances against exact answers."""

import cvxpy as cp
import numpy as np
import pytest
import torch
from attack_specimens import seeded
from torch import nn

from advlab.attacks import EAD, FAB, PGD, CarliniWagner, DeepFool
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, cross_entropy, logistic, margin, squared
from advlab.models import Stack
from advlab.threats import Ball, Cap

NORMS = ["l1", "l2", "linf"]
BOXES = [None, (0.0, 1.0)]
ORDER = {"l1": 1, "l2": 2, "linf": np.inf}
EVERY = [DeepFool(), FAB(steps=10), CarliniWagner(steps=50, rounds=3), EAD(steps=50, rounds=3)]


def solved(slope, rise, start, norm, box) -> float:
    """The least norm of a move that rises by `rise`, infinite if the box holds none."""
    move = cp.Variable(len(slope))
    limits = [slope @ move == rise]
    if box:
        limits += [start + move >= box[0], start + move <= box[1]]
    problem = cp.Problem(cp.Minimize(cp.norm(move, ORDER[norm])), limits)
    problem.solve(solver=cp.CLARABEL)
    return problem.value if problem.status == "optimal" else np.inf


def linear(seed: int, classes: int = 4, d: int = 8, rows: int = 5):
    rng = seeded(seed)
    weight = torch.randn(classes, d, generator=rng, dtype=torch.float64)
    offset = 0.3 * torch.randn(classes, generator=rng, dtype=torch.float64)
    x = torch.rand(rows, d, generator=rng, dtype=torch.float64)
    x[:, :2] = x[:, :2].round()  # on the edge of the box
    return weight, offset, x, (x @ weight.T + offset).argmax(1)


def exact_distances(weight, offset, x, y, norm, box) -> torch.Tensor:
    """The nearest of the boundaries with every other class, one convex problem each."""
    found = []
    for point, label in zip(x.numpy(), y.tolist(), strict=True):
        rivals = [k for k in range(len(weight)) if k != label]
        slopes = [(weight[k] - weight[label]).numpy() for k in rivals]
        rises = [-(s @ point + float(offset[k] - offset[label])) for s, k in zip(slopes, rivals)]  # noqa: B905
        found.append(min(solved(s, r, point, norm, box) for s, r in zip(slopes, rises)))  # noqa: B905
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("seed", range(6))
def test_the_move_onto_a_plane_is_the_shortest(norm, box, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    slope, start = rng.normal(size=d), rng.uniform(0, 1, d)
    start[rng.random(d) < 0.3] = rng.choice([0.0, 1.0])
    slope[rng.random(d) < 0.2] = 0.0
    slope[0] += 0.1
    most = np.abs(slope) @ np.where(slope > 0, 1 - start, start)
    rise = float(rng.choice([0.2, 0.9, 1.5])) * most * rng.choice([1, -1])
    tensors = (torch.tensor(v)[None] for v in (slope, [rise], start))
    slopes, rises, starts = tensors
    move, reached = Ball(norm=norm, radius=1.0, box=box).onto_plane(slopes, rises[:, 0], starts)
    expected = solved(slope, rise, start, norm, box)
    assert bool(reached) == np.isfinite(expected)
    if np.isfinite(expected):
        assert float(move @ slopes[0]) == pytest.approx(rise, abs=1e-9)
        length = float(torch.linalg.vector_norm(move, ORDER[norm]))
        assert length == pytest.approx(expected, rel=1e-5, abs=1e-7)
    if box:
        assert ((starts + move >= -1e-12) & (starts + move <= 1 + 1e-12)).all()


def test_a_plane_out_of_reach_is_approached_as_far_as_the_box_goes():
    slope = torch.tensor([[2.0, -1.0, 0.0]])
    start = torch.tensor([[0.25, 0.5, 0.5]])
    for norm in NORMS:
        move, reached = Ball(norm=norm, radius=1.0, box=(0.0, 1.0)).onto_plane(
            slope, torch.tensor([9.0]), start
        )
        assert not reached
        torch.testing.assert_close(start + move, torch.tensor([[1.0, 0.0, 0.5]]))


@pytest.mark.parametrize("norm", NORMS)
def test_the_nearest_of_several_planes_is_chosen_with_the_box_in_mind(norm):
    """Without the box the first plane is nearer; inside it only the second can be reached."""
    values = torch.tensor([[-1.0, -1.0]])
    slopes = torch.tensor([[[5.0, 0.0], [0.0, 2.0]]])
    start = torch.tensor([[0.95, 0.1]])
    free, _, _ = Ball(norm=norm, radius=1.0).nearest_plane(values, slopes, start)
    torch.testing.assert_close(free, torch.tensor([[0.2, 0.0]]))
    inside = Ball(norm=norm, radius=1.0, box=(0.0, 1.0))
    boxed, slope, _ = inside.nearest_plane(values, slopes, start)
    torch.testing.assert_close(boxed, torch.tensor([[0.0, 0.5]]))
    torch.testing.assert_close(slope, slopes[:, 1])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("box", BOXES)
def test_distances_of_linear_classifiers_are_exact(norm, box):
    weight, offset, x, y = linear(3)
    expected = exact_distances(weight, offset, x, y, norm, box)
    loss = ModelLoss(lambda x: x @ weight.T + offset, y, margin)
    attacks = [(FAB(steps=30), 3e-3), (FAB(steps=30, targets=3), 3e-3), (DeepFool(), 2e-2)]
    attacks += [(CarliniWagner(steps=100), 1e-2)] if norm == "l2" else []
    attacks += [(EAD(steps=100), 0.05)] if norm == "l1" else []
    for attack, slack in attacks:
        found = attack.minimum(loss, x, norm, box, rng=seeded(0))
        assert found.found.all()
        assert (loss(found.x) > 0).all()
        length = torch.linalg.vector_norm(found.x - x, ORDER[norm], dim=1)
        torch.testing.assert_close(found.distance, length)
        ratio = found.distance / expected
        assert float(ratio.min()) > 1 - 1e-6, attack
        # A penalty follows the rival that leads, which need not be the nearest, and some rows stay.
        most = ratio.median() if isinstance(attack, CarliniWagner | EAD) else ratio.max()
        assert float(most) < 1 + slack, attack
        if box:
            assert ((found.x >= 0) & (found.x <= 1)).all()


@pytest.mark.parametrize("attack", EVERY, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_one_real_output_has_the_boundary_at_zero(attack, shape):
    w = torch.tensor([3.0, 4.0], dtype=torch.float64)
    x = torch.tensor([[1.0, 0.5], [-1.0, 0.0], [2.0, 1.0]], dtype=torch.float64)
    y = torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)
    loss = ModelLoss(lambda x: (x @ w).reshape(-1, *shape), y, logistic)
    norm, dual = ("l1", 4.0) if isinstance(attack, EAD) else ("l2", 5.0)
    found = attack.minimum(loss, x, norm, rng=seeded(0))
    expected = torch.tensor([5.0, 3.0, 0.0], dtype=torch.float64) / dual
    torch.testing.assert_close(found.distance, expected, rtol=0.03, atol=0)
    assert torch.equal(found.x[2], x[2])


@pytest.mark.parametrize("attack", EVERY, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("classes", [2, 3])
def test_images_and_classes_of_any_number(attack, classes):
    torch.manual_seed(classes)
    model = nn.Sequential(nn.Flatten(), nn.Linear(18, 12), nn.Tanh(), nn.Linear(12, classes))
    x = torch.rand(8, 2, 3, 3)
    y = model(x).argmax(1)
    found = attack.minimum(ModelLoss(model, y, cross_entropy), x, "l2", (-1, 2), rng=seeded(0))
    assert found.x.shape == x.shape
    assert found.found.any()
    broken = model(found.x).argmax(1) != y
    assert torch.equal(broken, found.found)


def test_inside_a_ball_the_direction_found_is_followed_to_the_rim():
    """So the worst loss of a linear classifier is found, broken or not."""
    w = torch.randn(6, generator=seeded(1), dtype=torch.float64)
    x = torch.randn(9, 6, generator=seeded(2), dtype=torch.float64)
    loss = ModelLoss(lambda x: x @ w, (x @ w).sign(), logistic)
    for norm in NORMS:
        ball = Ball(norm=norm, radius=0.2)
        best = PGD()(loss, x, ball, rng=seeded(0)).loss
        for attack in (DeepFool(), FAB(steps=5)):
            found = attack(loss, x, ball, rng=seeded(0)).loss
            torch.testing.assert_close(found, best, rtol=1e-4, atol=0)


def test_a_constant_classifier_has_no_boundary():
    x, y = torch.rand(3, 4), torch.tensor([0, 0, 1])
    loss = ModelLoss(lambda x: torch.cat([1 + 0 * x[:, :1], 0 * x[:, :1]], 1), y, margin)
    for attack in EVERY:
        found = attack.minimum(loss, x, "l2", (0.0, 1.0), rng=seeded(0))
        assert found.found.tolist() == [False, False, True]
        assert torch.equal(found.distance, torch.tensor([torch.inf, torch.inf, 0.0]))
        assert torch.equal(found.x, x)


@pytest.mark.parametrize("attack", EVERY, ids=lambda a: type(a).__name__)
def test_what_is_no_classifier_is_refused(attack):
    x, ball = torch.rand(3, 4), Ball(norm="l2", radius=0.1)
    with pytest.raises(AdvlabError, match=r"looks for a decision boundary.*use PGD"):
        attack(lambda x: x.sum(1), x, ball, rng=seeded(0))
    targets = torch.tensor([0.3, 1.2, -4.0])
    with pytest.raises(AdvlabError, match="labels must be -1 or"):
        attack(ModelLoss(lambda x: x.sum(1), targets, squared), x, ball, rng=seeded(0))
    scores = ModelLoss(lambda x: x[:, :2], torch.rand(3, 2), lambda z, y: (z - y).sum(1))
    with pytest.raises(AdvlabError, match="one label per row"):
        attack(scores, x, ball, rng=seeded(0))
    with pytest.raises(AdvlabError, match="declared box"):
        attack.minimum(ModelLoss(nn.Linear(4, 2), x[:, 0] > 1, margin), x + 3, "l2", (0, 1), rng=[])


@pytest.mark.parametrize("attack", [DeepFool(), FAB(steps=10)], ids=["DeepFool", "FAB"])
def test_on_the_sphere_the_answer_is_on_the_sphere_and_breaks(attack):
    """A boundary plane through the origin at 30 degrees: the chord is 2 sin(15 degrees)."""
    angle = torch.tensor(torch.pi / 6, dtype=torch.float64)
    x = torch.stack([angle.cos(), angle.sin()])[None]
    loss = ModelLoss(lambda x: x[:, 1], torch.ones(1, dtype=torch.float64), margin)
    chord = 2 * float((angle / 2).sin())
    for radius, breaks in ((chord * 1.03, True), (chord * 0.97, False)):
        found = attack(loss, x, Cap(radius=radius), rng=seeded(0))
        assert bool(found.loss > 0) == breaks
        assert float(found.x.norm()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("attack", EVERY, ids=lambda a: type(a).__name__)
def test_a_stack_keeps_its_rows_and_each_replicate_its_numbers(attack):
    torch.manual_seed(0)
    nets = [nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).double() for _ in range(2)]
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    y = torch.stack([net(block).argmax(1) for net, block in zip(nets, x, strict=True)])
    y[:, 0] = (y[:, 0] + 1) % 3  # already wrong: alone such a row leaves at once
    ball = Ball(norm="l2", radius=0.7)
    rngs = [seeded(0), seeded(1)]
    loss = ModelLoss(Stack(nets), y.flatten(), margin)
    together = attack(loss, x.flatten(0, 1), ball, rng=rngs)
    for r, net in enumerate(nets):
        alone = attack(ModelLoss(net, y[r], margin), x[r], ball, rng=seeded(r))
        block = together.loss[5 * r : 5 * r + 5]
        assert torch.equal(block > 0, alone.loss > 0)


def test_refinement_only_shortens():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))
    x = torch.randn(20, 6)
    loss = ModelLoss(model, model(x).argmax(1), margin)
    rough, fine = (
        DeepFool(refinements=steps, overshoot=0.3).minimum(loss, x, "l2", rng=seeded(0))
        for steps in (0, 5)
    )
    both = rough.found
    assert (fine.distance <= rough.distance).all()
    assert fine.distance[both].mean() < 0.95 * rough.distance[both].mean()
