"""Every warning is raised where it should be, and a model without tricks raises none."""

from dataclasses import replace

import evaluated_nets as nets
import pytest
import torch
from torch import nn

import advlab
from advlab.attacks import FGM, PGD, AutoAttack
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.evaluation import plan
from advlab.evaluation.batch import evaluate_batch
from advlab.evaluation.checks import CheckContext, monotonicity
from advlab.evaluation.checks.comparison_attacks import ComparisonAttacks
from advlab.threats import Ball, Cap

BALL = Ball(norm="linf", radius=0.1, box=(0.0, 1.0))
SHORT = AutoAttack(steps=15, queries=100)


def kinds(model, x=None, y=None, ball=BALL, attack="fast", **settings) -> list[str]:
    data = nets.blobs()
    x, y = data[0] if x is None else x, data[1] if y is None else y
    found = advlab.evaluate(model, x, y, ball, attack, certificates=(), **settings)
    return [warning.kind for warning in found.check_warnings]


@pytest.mark.parametrize(
    ("ball", "attack"),
    [
        (BALL, "fast"),
        (BALL, SHORT),
        (Ball(norm="l2", radius=0.25), "fast"),
        (Ball(norm="l1", radius=0.6, box=(0.0, 1.0)), "fast"),
    ],
    ids=["linf", "AutoAttack", "l2", "l1"],
)
def test_a_model_without_tricks_raises_no_warning(ball, attack):
    assert kinds(nets.trained(), ball=ball, attack=attack) == []


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (nets.rounded, {"zero_gradient", "black_box"}),
        (nets.rippled, {"wild_gradient", "black_box"}),
        (nets.saturated, {"zero_gradient", "softmax"}),
        (nets.noisy, {"random"}),
        (nets.wide, {"labels"}),
    ],
    ids=["rounded", "rippled", "saturated", "noisy", "wide"],
)
def test_a_trick_is_seen_through(model, expected):
    assert expected <= set(kinds(model()))


def test_masking_hides_less_than_it_seems():
    """The masked model breaks where the bare one does: most of that is found by the checks."""
    x, y = nets.blobs()
    ball = Ball(norm="linf", radius=0.2, box=(0.0, 1.0))
    bare = advlab.evaluate(nets.trained(), x, y, ball, "fast", checks=False)
    masked = advlab.evaluate(nets.rounded(), x, y, ball, "fast")
    blind = advlab.evaluate(nets.rounded(), x, y, ball, "fast", checks=False)
    assert blind.robust_error < masked.robust_error <= bare.robust_error + 0.05
    assert any("(check)" in word for word in masked.broken_by)


def test_an_attack_of_ones_own_is_measured_alone():
    x, y = nets.blobs()
    checked, alone = (
        advlab.evaluate(nets.rounded(), x, y, BALL, PGD(), checks=checks)
        for checks in (True, False)
    )
    assert checked.robust_error == alone.robust_error
    assert "black_box" in {warning.kind for warning in checked.check_warnings}


def test_what_another_model_gives_away():
    blocked = nets.Around(before=lambda x: x.detach())
    settings = {"transfer": nets.trained(), "ball": Ball(norm="linf", radius=0.2)}
    assert {"transfer", "zero_gradient"} <= set(kinds(blocked, attack=PGD(), **settings))
    assert "suite" in kinds(blocked, **settings)  # which needs no gradient, and no other model


def test_train_mode():
    model = nn.Sequential(nets.trained(), nn.Dropout(0.5)).train()
    assert "train_mode" in kinds(model)
    assert model[1].training


@pytest.mark.parametrize(
    ("scale", "ball", "advice"),
    [
        (1.0, Ball(norm="linf", radius=8, box=(0, 1)), "did you mean 8/255"),
        (1.0, Ball(norm="l2", radius=128, box=(0, 1)), "did you mean 128/255"),
        (255.0, Ball(norm="linf", radius=8 / 255, box=(0, 255)), "did you mean 8"),
        (255.0, Ball(norm="l2", radius=0.5), "did you mean 128"),
    ],
)
def test_eps_of_another_scale(scale, ball, advice):
    x, y = nets.blobs()
    model = nets.Around(before=lambda x: x / scale)
    found = advlab.evaluate(model, scale * x, y, ball, FGM(), certificates=())
    (text,) = [one.text for one in found.check_warnings if one.kind == "eps_scale"]
    assert advice in text


def test_usual_radii_are_of_the_right_scale():
    for ball in (BALL, Ball(norm="l2", radius=0.5, box=(0, 1)), Ball(norm="l1", radius=2)):
        assert "eps_scale" not in kinds(nets.trained(), ball=ball, attack=FGM())


def test_standardised_images_without_a_box():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(40, 1, 4, 2, generator=rng)
    y = torch.arange(40) % 3
    ball = Ball(norm="linf", radius=0.1)
    assert "normalisation" in kinds(nets.trained(), x, y, ball)
    assert "normalisation" not in kinds(nets.trained(), x.flatten(1), y, ball)
    assert "normalisation" not in kinds(nets.trained(), x.sigmoid(), y, ball)


def test_labels_by_other_names():
    x, y = nets.blobs()
    found = advlab.evaluate(nets.trained(), x, torch.tensor([1, 2, 0])[y], BALL, "fast")
    (text,) = [one.text for one in found.check_warnings if one.kind == "labels"]
    assert "other names" in text
    model = nets.Around(behind=lambda z: -z)
    found = advlab.evaluate(model, x, y, BALL, "fast", checks=True)
    assert any("below chance" in text or "other names" in text for text in found.warnings)


def test_labels_that_count_from_one():
    x, y = nets.blobs()
    with pytest.raises(AdvlabError, match="count from one: use y - 1"):
        advlab.evaluate(nets.trained(), x, y + 1, BALL)


def test_inputs_are_cast_to_the_weights_and_that_is_said():
    x, y = nets.blobs()
    assert kinds(nets.trained(), x.double(), y) == ["dtype"]


def test_errors_that_fall_are_warned_of_and_rising_ones_are_not():
    rising = [torch.arange(64) < k for k in (4, 10, 10, 30)]
    assert monotonicity._falls("more steps break", "kind", [1, 2, 3, 4], rising) == []
    falling = [torch.arange(64) < k for k in (4, 10, 5, 30)]
    (warning,) = monotonicity._falls("more steps break", "kind", [1, 2, 3, 4], falling)
    assert "more steps break less: 8% of rows at 3, 16% at 2" in warning.text


def context_after(model, attack, ball=BALL, **changes) -> CheckContext:
    x, y = nets.blobs()
    chosen = plan(attack)
    outcomes = evaluate_batch(model, x, y, ball, chosen, (), generator("test"))
    return CheckContext(model, x, y, ball, chosen, 0, outcomes=replace(outcomes, **changes))


def test_a_certificate_that_lies_is_caught():
    ball = Ball(norm="linf", radius=0.3, box=(0.0, 1.0))
    bound = torch.full((120,), -1.0)
    _, warnings = monotonicity.over_radii(context_after(nets.trained(), PGD(), ball, bound=bound))
    assert [warning.kind for warning in warnings] == ["certificate"]
    _, warnings = monotonicity.over_radii(context_after(nets.trained(), PGD(), ball))
    assert warnings == []


def test_a_black_box_of_the_plan_counts_without_another_try():
    compared = ComparisonAttacks(context_after(nets.rounded(), SHORT))
    compared.black_box()
    assert [warning.kind for warning in compared.warnings] == ["black_box"]
    assert compared.members == []


def test_the_largest_radius_is_certain_loss():
    """Within it each row has an input of another predicted class: the exact error is 1."""
    context = context_after(nets.trained(), FGM())
    radius = monotonicity._radius_of_certain_loss(context)
    with torch.no_grad():
        answers = nets.trained()(context.x).argmax(1)
    far = torch.cdist(context.x[context.few], context.x[context.few], p=float("inf"))
    same = answers[context.few][:, None] == answers[context.few]
    nearest = far.masked_fill(same, float("inf")).amin(1)
    assert bool((nearest <= radius).all())
    assert float(nearest.max()) == pytest.approx(radius, rel=2e-3)


def test_a_cap_is_a_threat_set_too():
    x, y = nets.blobs()
    x = nn.functional.normalize(x)
    found = advlab.evaluate(nets.trained(), x, y, Cap(radius=0.1), PGD(steps=5))
    assert found.clean_error <= found.robust_error <= found.certified_error < 1
