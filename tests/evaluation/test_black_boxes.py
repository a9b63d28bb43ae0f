"""Models that hide their gradients or give labels only: the bound moves, not only a warning."""

import masked_nets
import pytest
import torch

import advlab
from advlab.attacks import AutoAttack, HopSkipJump, MemberResult
from advlab.evaluation import plan, suites
from advlab.evaluation.suited import suited
from advlab.evaluation.validate import validate
from advlab.losses import ModelLoss, is_error, margin
from advlab.models import LabelsOnly
from advlab.threats import Ball

SHORT = AutoAttack(steps=20, queries=100)


@pytest.fixture(autouse=True)
def few_queries(monkeypatch):
    """Attacks without gradients ask for less than they may: these networks are small."""
    monkeypatch.setattr(suites, "FEW_QUERIES", 120)
    monkeypatch.setattr(suites, "QUERIES", 240)


@pytest.mark.parametrize(
    ("kind", "norm", "eps"),
    [
        ("softmax", "linf", 0.1),
        ("quantised", "l2", 0.35),
        ("sign", "linf", 0.1),
        ("winners", "l2", 0.35),
    ],
)
def test_at_least_as_many_rows_as_the_best_of_the_peers(kind, norm, eps):
    """In full size, and in both norms for each: benchmarks/masked_models.py."""
    x, y = masked_nets.clouds(16)
    model, ball = masked_nets.masked(kind), Ball(norm, eps, box=(0, 1))
    peers = masked_nets.broken_by_peers(model, x, y, norm, eps)
    peers["AutoAttack"] = is_error(SHORT(ModelLoss(model, y, margin), x, ball, rng=0).loss)
    found = advlab.evaluate(model, x, y, ball, SHORT, certificates=(), points=True)
    assert len(peers) >= 4
    assert int(found.adversarial.broken.sum()) >= max(int(hit.sum()) for hit in peers.values())
    with torch.no_grad():
        judged = is_error(margin(model(found.adversarial.x), y))
    assert torch.equal(judged, found.adversarial.broken)
    assert found.robust_error > 0.25


def test_masking_brings_attacks_that_do_not_need_gradients():
    x, y = masked_nets.clouds(16)
    ball = Ball("linf", 0.1, box=(0, 1))
    found = advlab.evaluate(masked_nets.masked("softmax"), x, y, ball, "fast")
    names = [member.name for member in found.members]
    assert {"BPDA (check)", "RayS (check)", "HopSkipJump (check)"} <= set(names)
    open_ = advlab.evaluate(masked_nets.masked("none"), x, y, ball, "fast")
    assert not any("BPDA" in member.name for member in open_.members)
    blind = advlab.evaluate(masked_nets.masked("softmax"), x, y, ball, "fast", checks=False)
    assert found.robust_error >= blind.robust_error + 0.2
    alone = advlab.evaluate(masked_nets.masked("softmax"), x, y, ball, HopSkipJump(queries=50))
    assert not any("BPDA" in member.name for member in alone.members)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_function_of_labels_is_attacked_by_labels(norm):
    x, y = masked_nets.clouds(16)
    net, ball = masked_nets.masked("none"), Ball(norm, 0.1 if norm == "linf" else 0.35, box=(0, 1))
    model = LabelsOnly(lambda x: net(x).argmax(1), classes=4)
    found = advlab.evaluate(model, x, y, ball, "fast", certificates=())
    truth = advlab.evaluate(net, x, y, ball, "fast", certificates=(), checks=False)
    assert found.robust_error >= truth.robust_error - 3 / 16
    (text,) = [one.text for one in found.check_warnings if one.kind == "suite"]
    assert "labels only" in text
    assert "HopSkipJump" in text
    assert ("RayS" in text) == (norm == "linf")
    assert {one.kind for one in found.check_warnings} == {"suite"}
    told = advlab.attack(model, x, y, ball, quiet=True)
    assert float(told.broken.double().mean()) == pytest.approx(found.robust_error, abs=2 / 16)
    for member in found.members:
        assert member.backwards == 0
        # The bisection under way is finished, and points that are returned are looked at.
        assert member.queries_per_row <= 200
    assert "queries per row" in str(found)


def test_scores_without_gradients_meet_square_first():
    x, y = masked_nets.clouds(8)
    net = masked_nets.masked("none")

    def scores(x):
        with torch.no_grad():
            return net(x)

    found = advlab.evaluate(scores, x, y, Ball("linf", 0.1), "fast", certificates=(), checks=False)
    assert [member.name for member in found.members] == ["clean", "Square", "RayS", "HopSkipJump"]
    assert "no gradient" in found.warnings[0]


def test_an_operation_without_a_derivative_lets_no_gradient_through():
    x, y = masked_nets.clouds(8)
    net = masked_nets.masked("none")
    found = advlab.evaluate(
        lambda x: net(x // 0.05 * 0.05), x, y, Ball("linf", 0.1), "fast", certificates=(),
        checks=False,
    )  # fmt: skip
    assert "no gradient" in found.warnings[0]


def test_random_labels_are_climbed_as_shares():
    x, y = masked_nets.clouds(16)
    net = masked_nets.masked("none")
    model = LabelsOnly(lambda x: net(x + 0.1 * torch.randn_like(x)).argmax(1), classes=4)
    chosen, notes = suited(
        plan("fast"), validate(model, x, y, Ball("linf", 0.1)), Ball("linf", 0.1), 0
    )
    assert list(chosen.members) == ["Square", "RayS", "HopSkipJump"]
    assert chosen.draws == 20
    assert "no gradient" in notes[0].text


def test_a_single_attack_is_measured_alone_on_labels_too():
    x, y = masked_nets.clouds(8)
    net = masked_nets.masked("none")
    model = LabelsOnly(lambda x: net(x).argmax(1), classes=4)
    chosen, notes = suited(
        plan("pgd"), validate(model, x, y, Ball("linf", 0.1)), Ball("linf", 0.1), 0
    )
    assert (list(chosen.members), notes) == (["PGD"], [])


def test_queries_per_row():
    assert MemberResult("a", 4, 1, 0.5, 10, 5).queries_per_row == 2.5
    assert MemberResult("a", 0, 0, 0.0, 0, 0).queries_per_row == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_goes_through_the_whole_suite(dtype):
    x, y = masked_nets.clouds(12)
    net, ball = masked_nets.masked("none"), Ball("linf", 0.1, box=(0, 1))
    whole = advlab.evaluate(net, x, y, ball, SHORT, certificates=(), checks=False)
    half = advlab.evaluate(
        net.to(dtype), x.to(dtype), y, ball, SHORT, certificates=(), checks=False
    )
    assert half.robust_error == pytest.approx(whole.robust_error, abs=2 / 12)
