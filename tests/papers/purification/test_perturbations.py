"""Perturbations, transfer, the worst case: known answers, plain loops, the order of claim 24."""

import itertools

import pytest
import torch
from torch import nn

from advlab.attacks import FGM, PGD, Identity
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators, normal
from advlab.models import Stack
from advlab.papers.purification.data import SparseCoding
from advlab.papers.purification.measures import (
    Nets,
    certified,
    energy_count,
    label_direction,
    margin_of,
    participation,
    survival,
    transfer_matrix,
    universal,
)
from advlab.papers.purification.models import SymmetricReLU, pure_features
from advlab.threats import Ball


def some(*shape: int, name: object = "x") -> torch.Tensor:
    return torch.randn(*shape, generator=generator("perturbations", name), dtype=torch.float64)


def problem(seeds=(0, 1), sigma: float = 0.0):
    """Stacks of noisy dictionary networks, and data of their own concepts."""
    data = SparseCoding(n=60, d=12, k=4, margin=0.5)
    models, points = [], []
    for seed in seeds:
        concept = data.concept(generator("concept", seed))
        rng = generator("net", seed)
        mean = pure_features(concept.M, concept.w, 2, 1.0)
        models.append(SymmetricReLU.draw(12, 24, 0.25, 0.15, rng, sigma, mean))
        points.append(data.sample(generator("points", seed), concept=concept))
    x, y, M, w = (torch.stack([getattr(p, name) for p in points]) for name in ("x", "y", "M", "w"))
    return models, x, y, label_direction(M, w)


def test_participation_of_known_rows():
    rows = torch.zeros(4, 10, dtype=torch.float64)
    rows[0] = -2.0
    rows[1, :3] = 1e-90
    rows[2, :2] = torch.tensor([3.0, 1.0])
    torch.testing.assert_close(
        participation(rows), torch.tensor([10.0, 3.0, 100 / 82, 0.0]).double()
    )
    assert energy_count(rows[[0, 2, 3]]).tolist() == [9, 1, 0]
    assert energy_count(rows[[0, 2, 3]], 0.95).tolist() == [10, 2, 0]


def test_counted_coordinates_hold_the_energy_and_no_fewer_do():
    rows = some(3, 5, 8)
    found = energy_count(rows)
    for r, i in itertools.product(range(3), range(5)):
        energy = sorted((rows[r, i] ** 2).tolist(), reverse=True)
        need = next(c for c in range(1, 9) if sum(energy[:c]) >= 0.9 * sum(energy))
        assert int(found[r, i]) == need


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_universal_perturbation_is_worst_for_the_linear_oracle(norm):
    direction, y, ball = (
        some(2, 5),
        torch.tensor([[1.0, -1.0]] * 2).double(),
        Ball(norm=norm, radius=0.3),
    )
    delta = universal(direction, y, ball)
    drop = y * (delta * direction[:, None]).sum(-1)
    dual = torch.stack([ball.dual_norm(one) for one in direction])
    torch.testing.assert_close(drop, -0.3 * dual[:, None].expand(2, 2))
    norms = torch.linalg.vector_norm(delta, 2 if norm == "l2" else torch.inf, dim=-1)
    torch.testing.assert_close(norms, torch.full((2, 2), 0.3).double())


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_the_order_of_claim_24_holds_row_by_row(norm, sigma):
    models, x, y, direction = problem(sigma=sigma)
    ball = Ball(norm=norm, radius=0.25 if norm == "l2" else 0.1)
    rngs = generators("survival", seeds=(0, 1))
    found = survival(Stack(models), x, y, ball, direction, rngs)
    sound = certified(Nets.of(Stack(models)), x, y, ball)
    chain = [sound, found.worst, found.pgd, found.fgm & found.clean]
    for less, more in itertools.pairwise(chain):
        assert not bool((less & ~more).any())
    assert not bool((found.worst & ~found.universal).any())
    assert not bool((found.worst & ~found.random).any())
    shares = {name: float(value.mean()) for name, value in found.accuracies().items()}
    assert shares["worst"] <= shares["fgm"] < shares["random"] <= shares["clean"]
    assert bool((found.accuracies()["clean"] == found.clean.double().mean(-1)).all())


def test_flags_are_those_of_the_attacks_themselves():
    models, x, y, direction = problem((0,))
    model, rows, labels, ball = models[0], x[0], y[0], Ball(norm="l2", radius=0.25)
    found = survival(model, rows, labels, ball, direction[0], generator("s"))
    assert torch.equal(found.clean, labels * model(rows) > 0)
    moved = rows - 0.25 * labels[:, None] * direction[0] / direction[0].norm()
    assert torch.equal(found.universal, labels * model(moved) > 0)
    grad = model.input_gradient(rows)
    fast = rows - 0.25 * labels[:, None] * grad / grad.norm(dim=1, keepdim=True)
    assert torch.equal(found.fgm, labels * model(fast) > 0)
    # A long search with the house's own PGD breaks next to nothing more.
    search = PGD(steps=60, step_size=0.05, restarts=4)
    hard = search(margin_of(model, labels), rows, ball, rng=generator("hard")).loss < 0
    assert int((found.worst & ~hard).sum()) <= 1


def walk(net, x, y, start, ball, steps):
    """Which rows are right all along a walk that drops nobody, and at its last jump."""
    point, right = start, torch.ones(len(x), dtype=torch.bool)
    for step in range(steps + 2):
        right &= (y * net(point) > 0).detach()
        grad = -y[:, None] * net.input_gradient(point).detach()
        direction = grad / grad.norm(dim=1, keepdim=True)
        if step < steps:
            move = point + 2.5 / steps * ball.radius * direction - x
            length = move.norm(dim=1, keepdim=True)
            point = x + move * (ball.radius / length).clamp(max=1)
        else:
            point = x + ball.radius * direction
    return right


def test_worst_is_four_walks_that_drop_nobody():
    net = SymmetricReLU.draw(6, 10, 1.0, 0.6, generator("rough"), 0.1)
    x, ball = 1.2 * some(3000, 6, name="rough"), Ball(norm="l2", radius=0.9)
    y = torch.where(net(x) >= 0, 1.0, -1.0).detach().double()
    direction = some(6, name="way")
    found = survival(net, x, y, ball, direction, generator("s"), steps=3)
    noise = normal(x, generator("s"))
    guess = 0.9 * noise / noise.norm(dim=1, keepdim=True)
    best = x - 0.9 * y[:, None] * direction / direction.norm()
    grad = net.input_gradient(x).detach()
    fast = x - 0.9 * y[:, None] * grad / grad.norm(dim=1, keepdim=True)
    pgd = walk(net, x, y, fast, ball, 3)
    assert torch.equal(found.pgd, pgd & found.clean)
    walks = [walk(net, x, y, start, ball, 3) for start in (best, x + guess, x - guess)]
    assert torch.equal(found.worst, torch.stack([found.pgd, *walks]).all(0))
    # Every start is needed somewhere, and the walk from FGM breaks what FGM does not.
    assert int(found.pgd.sum()) < int(found.fgm.sum())
    for one in range(4):
        others = torch.stack([w for i, w in enumerate([found.pgd, *walks]) if i != one]).all(0)
        assert int(others.sum()) > int(found.worst.sum())


class Plain(nn.Module):
    """A network that hides its explicit gradient."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


def test_any_model_and_any_company_give_the_same_flags():
    models, x, y, direction = problem()
    ball = Ball(norm="l2", radius=0.25)

    def run(model, *at, seeds):
        rngs = generators("survival", seeds=seeds)
        return survival(model, *(t[at] for t in (x, y)), ball, direction[at], rngs, steps=10)

    stacked = run(Stack(models), slice(None), seeds=(0, 1))
    tensors = run(Nets.of(Stack(models)), slice(None), seeds=(0, 1))
    plain = run(Stack([Plain(m) for m in models]), slice(None), seeds=(0, 1))
    alone = run(models[1], 1, seeds=(1,))
    for name in ("clean", "random", "universal", "fgm", "pgd", "worst"):
        flags = getattr(stacked, name)
        assert torch.equal(flags, getattr(tensors, name))
        assert torch.equal(flags, getattr(plain, name)), name
        assert torch.equal(flags[1], getattr(alone, name)), name


def test_a_dead_network_is_wrong_everywhere():
    x, y = some(6, 3), torch.ones(6).double()
    found = survival(
        Nets.at(torch.zeros(4, 3).double(), 0.1), x, y, Ball(norm="l2", radius=0.1), x[0],
        generator("dead"),
    )  # fmt: skip
    assert not any(bool(flags.any()) for flags in vars(found).values())


def test_transfers_are_accuracies_at_each_others_points():
    one, x, y, direction = problem()
    other = [problem((seed,), sigma=0.05)[0][0] for seed in (5, 6)]
    ball, stacks = Ball(norm="l2", radius=0.25), [Stack(one), Stack(other)]
    found = transfer_matrix(stacks, x, y, ball, FGM(), direction, generator("t"))
    assert found.accuracy.shape == (2, 2, 2)
    groups = [one, other]
    for a, b, r in itertools.product(range(2), range(2), range(2)):
        source, judge, rows, labels = groups[a][r], groups[b][r], x[r], y[r]
        grad = source.input_gradient(rows)
        moved = rows - 0.25 * labels[:, None] * grad / grad.norm(dim=1, keepdim=True)
        kept = labels * source(moved) < labels * source(rows)
        points = torch.where(kept[:, None], moved, rows)
        right = (labels * judge(points) > 0).double().mean()
        assert float(found.accuracy[a, b, r]) == pytest.approx(float(right))
    way = direction / direction.norm(dim=1, keepdim=True)
    for b, r in itertools.product(range(2), range(2)):
        moved = x[r] - 0.25 * y[r, :, None] * way[r]
        right = (y[r] * groups[b][r](moved) > 0).double().mean()
        assert float(found.universal[b, r]) == pytest.approx(float(right))
    still = transfer_matrix(stacks, x, y, ball, Identity(), direction, generator("t"))
    torch.testing.assert_close(still.accuracy[0], found.clean)
    single = transfer_matrix(one[:1], x[0], y[0], ball, FGM(), direction[0], generator("t"))
    assert single.accuracy.shape == (1, 1)
    assert float(single.accuracy) == float(found.accuracy[0, 0, 0])


def test_data_for_another_number_of_networks_is_refused():
    models, x, y, direction = problem()
    with pytest.raises(AdvlabError, match="2 replicates"):
        survival(
            Stack(models), x[0], y[0], Ball(norm="l2", radius=0.1), direction[0], generator("s")
        )
