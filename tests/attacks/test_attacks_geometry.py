"""What attacks ask of threat sets, and that they ask nothing else."""

import ast
from pathlib import Path

import pytest
import torch
from attack_specimens import dimension, inputs, loss_for, seeded, specimen

import advlab.attacks
from advlab.threats import Ball, Cap, Threat

SETS = [
    *(Ball(norm=n, radius=0.5, box=box) for n in ("l1", "l2", "linf") for box in (None, (-2, 2))),
    Cap(radius=0.5),
]
FILES = sorted(Path(advlab.attacks.__file__).parent.rglob("*.py"))


class Plain(Threat):
    """The least that a set of a user's own must say: an l2 ball."""

    def project(self, point, center):
        return Ball(norm="l2", radius=self.radius).project(point, center)

    def maximiser(self, grad, center):
        return center + self.radius * self.steepest(grad)

    def steepest(self, grad):
        return Ball(norm="l2", radius=self.radius).steepest(grad)

    def sample(self, center, *, rng):
        return Ball(norm="l2", radius=self.radius).sample(center, rng=rng)

    def contains(self, point, center):
        return Ball(norm="l2", radius=self.radius).contains(point, center)

    def check_center(self, center):
        pass


@pytest.mark.parametrize("threat", [*SETS, Plain(radius=0.5)], ids=str)
def test_a_projector_projects_and_ends_are_those_of_the_set(threat):
    x = inputs(1, threat)
    for scale in (0.1, 3.0):
        point = x + scale * torch.randn(x.shape, generator=seeded(2), dtype=x.dtype)
        assert torch.equal(threat.projector(x)(point), threat.project(point, x))
    ends = threat.ends(x)
    if ends is not None:
        corner = torch.where(torch.rand(x.shape, generator=seeded(3)) < 0.5, *ends)
        assert threat.contains(corner, x).all()
        assert torch.equal(threat.maximiser(torch.ones_like(x), x), ends[1])
    assert (ends is not None) == (isinstance(threat, Ball) and threat.norm == "linf")


@pytest.mark.parametrize("threat", [*SETS, Plain(radius=0.5)], ids=str)
def test_moves_are_measured_drawn_and_brought_back(threat):
    x = inputs(4, threat, rows=200)
    move = threat.uniform_move(x, rng=seeded(0))
    assert (threat.norm_of(move) <= 1).all()
    assert float(threat.norm_of(move).max()) > 0.95
    # max of <w, move> over moves of length one is the dual norm, and steepest attains it.
    w = torch.randn(x.shape, generator=seeded(1), dtype=x.dtype)
    assert ((w * move).sum(1) <= threat.dual_norm(w) + 1e-12).all()
    torch.testing.assert_close((w * threat.steepest(w)).sum(1), threat.dual_norm(w))
    legal = threat.to_domain(x + 5 * move)
    torch.testing.assert_close(threat.to_domain(legal), legal)
    torch.testing.assert_close(threat.to_domain(x), x)
    threat.check_center(legal)
    if threat.convex:
        inner = x + 0.3 * (threat.sample(x, rng=seeded(5)) - x)
        assert threat.contains(inner, x).all()


@pytest.mark.parametrize("threat", [*SETS, Plain(radius=0.5)], ids=str)
@pytest.mark.parametrize("d", [2, 3])
def test_grids_lie_in_the_set_and_come_near_every_point(threat, d):
    x = inputs(6, threat, rows=3, d=d)
    points = list(threat.grid(x, 400))
    assert all(bool(threat.contains(point, x).all()) for point in points)
    drawn = torch.stack([threat.sample(x, rng=seeded(k)) for k in range(20)])
    gaps = (torch.stack(points)[:, None] - drawn[None]).norm(dim=3).amin(0)
    assert float(gaps.max()) < 0.25


@pytest.mark.parametrize("attack", sorted(advlab.attacks.ATTACKS))
def test_a_set_of_ones_own_is_attacked(attack):
    kind, threat = advlab.attacks.ATTACKS[attack], Plain(radius=0.4)
    x, loss = inputs(8, d=dimension(kind)), loss_for(kind, 8)
    found = specimen(kind)(loss, x, threat, rng=seeded(0))
    assert threat.contains(found.x, x).all()
    if kind.ascends:
        assert (found.loss >= loss(x) - 1e-12).all()


def test_attacks_never_ask_which_set_it_is():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "isinstance":
                asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                assert not asked & {"Ball", "Cap"}, f"{path.name}:{node.lineno}"
            if isinstance(node, ast.Constant):
                assert node.value not in ("l1", "l2", "linf"), f"{path.name}:{node.lineno}"
