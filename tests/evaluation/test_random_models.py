"""Random models: errors are expectations over draws, never the luckiest of them."""

import evaluated_nets as nets
import numpy as np
import pytest
import random_nets
import torch
from torch import nn

import advlab
from advlab.attacks import APGD, AutoAttack, Random
from advlab.attacks._engine.random_models import MeanOverDraws, judge, seeded, unhurried
from advlab.certify import Smoothed, Smoothing
from advlab.core.errors import AdvlabError
from advlab.core.intervals import clopper_pearson
from advlab.core.randomness import generator
from advlab.evaluation import interval, plan
from advlab.evaluation.randomness import randomness
from advlab.evaluation.suited import suited
from advlab.evaluation.validate import validate
from advlab.losses import ModelLoss, is_error, margin
from advlab.threats import Ball

BALL = Ball("linf", 0.1, box=(0, 1))
MODELS = {
    "dropout left on": random_nets.DropoutLeftOn,
    "a constant and noise": random_nets.ConstantAndNoise,
    "one draw per batch": random_nets.NoisyInput,
}


def data(name: str, n: int = 30):
    x, y = nets.blobs(n)
    return x, 0 * y if name == "a constant and noise" else y


SHORT = AutoAttack("rand", steps=6)


@pytest.mark.parametrize("name", MODELS)
def test_the_lower_bound_is_the_expected_error_at_the_points_found(name):
    model, (x, y), suite = MODELS[name](), data(name), SHORT
    found = advlab.evaluate(model, x, y, BALL, suite, points=True, checks=False)
    torch.manual_seed(7)
    truth = float(random_nets.error_probability(model, found.adversarial.x, y).mean())
    clean = float(random_nets.error_probability(model, x, y).mean())
    # Rows that draw together differ from the truth together.
    close = 0.1 if name == "one draw per batch" else 0.04
    assert found.robust_error == pytest.approx(truth, abs=close)
    assert found.clean_error == pytest.approx(clean, abs=close)
    assert found.draws == 100
    low, high = found.intervals["robust_error"]
    assert low < truth < high
    if name == "a constant and noise":  # 0.0067; by the luckiest draw it was a half
        assert found.robust_error < 0.02
    else:
        assert found.robust_error > clean + 0.05
        with torch.no_grad():
            worst = margin(MeanOverDraws(model, 400).eval()(found.adversarial.x), y)
        agree = (is_error(worst) == found.adversarial.broken).double().mean()
        assert agree > 0.8


def test_the_one_line_form_judges_by_fresh_draws_too(capsys):
    model, (x, y) = random_nets.DropoutLeftOn(), data("")
    found = advlab.attack(model, x, y, BALL, SHORT)
    told = capsys.readouterr().err
    assert "random" in told
    assert "labels change" in told
    torch.manual_seed(3)
    truth = random_nets.error_probability(model, found.x, y)
    sure = (truth - 0.5).abs() > 0.2
    assert torch.equal(found.broken[sure], truth[sure] >= 0.5)
    with torch.no_grad():
        mean = judge(ModelLoss(model, y, margin), found.x, 400).margin
    assert torch.allclose(found.loss, mean, atol=2.5)
    assert not torch.equal(found.x, x)


def test_the_same_seed_gives_the_same_numbers():
    model, (x, y) = random_nets.DropoutLeftOn(), data("", 12)
    first, second, third = (
        advlab.evaluate(model, x, y, BALL, SHORT, rng=seed, checks=False) for seed in (4, 4, 5)
    )
    assert first.robust_error == second.robust_error
    assert first.intervals == second.intervals
    assert third.intervals != first.intervals


def test_draws_by_name_leave_the_global_generator_as_it_was():
    before = torch.get_rng_state()
    with seeded(torch.zeros(1), "mine", 3):
        first = torch.rand(2)
    assert torch.equal(before, torch.get_rng_state())
    with seeded(torch.zeros(1), "mine", 3):
        assert torch.equal(first, torch.rand(2))


def test_a_run_that_goes_on_gives_the_same_expectation(tmp_path):
    model, (x, y) = random_nets.DropoutLeftOn(), data("", 12)
    settings = {"checks": False, "batch": 6, "store": tmp_path}
    first = advlab.evaluate(model, x, y, BALL, SHORT, **settings)
    (tmp_path / "batch-00000006.safetensors").unlink()
    again = advlab.evaluate(model, x, y, BALL, SHORT, **settings)
    assert again.intervals == first.intervals
    assert again.draws == 100


def test_how_random_a_model_is():
    x, y = nets.blobs(60)
    assert randomness(nets.trained(), x, y) is None
    rounding = nets.Around(behind=lambda z: z * (1 + 1e-7 * torch.rand_like(z)))
    assert randomness(rounding, x, y) is None
    coin = randomness(nets.Around(behind=lambda z: torch.randn_like(z)), x, y)
    assert coin.changed == pytest.approx(2 / 3, abs=0.15)
    noise = randomness(nets.Around(behind=lambda z: z + 0.1 * torch.randn_like(z)), x, y)
    assert noise.changed < 0.1
    assert noise.spread == pytest.approx(0.1 * 2**0.5, rel=0.2)  # a difference of two draws


def test_the_standard_suite_gives_way_to_rand_and_says_so():
    model, (x, y) = random_nets.DropoutLeftOn(), data("", 6)
    chosen, notes = suited(plan(None), validate(model, x, y, BALL), BALL, 0)
    assert (chosen.name, chosen.draws, chosen.climbing) == ("rand", 20, 20)
    assert [note.kind for note in notes] == ["suite"]
    own, notes = suited(plan(SHORT), validate(model, x, y, BALL), BALL, 0)
    assert (own.members, own.draws, notes) == (plan(SHORT).members, 20, [])


def test_a_single_attack_stays_what_it_is_and_climbs_the_mean():
    model, (x, y) = random_nets.ConstantAndNoise(), data("a constant and noise")
    found = advlab.evaluate(model, x, y, BALL, Random(), checks=False)
    assert found.attack == "Random"
    assert found.robust_error < 0.02


def test_no_row_of_a_random_model_leaves_at_half():
    for member in plan("standard").members.values():
        patient = unhurried(member)
        settings = patient.model_dump()
        assert settings.get("early_exit", False) is False
        assert settings.get("climb_margin", False) is False


@pytest.mark.parametrize("model", [nets.trained, nets.rounded])
def test_models_that_are_not_random_are_judged_once(model):
    x, y = nets.blobs(20)
    found = advlab.evaluate(model(), x, y, BALL, "fast", checks=False)
    assert found.draws == 1
    assert found.label_changes == 0
    assert all(result.name != "fresh draws" for result in found.members)


def test_the_interval_covers_rows_and_draws():
    """By simulation: error probabilities of the population are uniform on [0, 0.4]."""
    rng = np.random.default_rng(0)
    for shared in (False, True):
        covered = 0
        for _ in range(200):
            p = rng.uniform(0, 0.4, 40)
            # Where they share, all rows of a call see one draw.
            wrong = rng.random((20, 1 if shared else 40)) < p
            low, high = interval(torch.from_numpy(wrong))
            covered += low <= 0.2 <= high
        assert covered >= 186
    answers = torch.arange(30) % 3 == 0
    assert interval(answers.expand(5, 30)) == interval(answers) == clopper_pearson(10, 30)
    low, high = clopper_pearson(9.999999, 30)
    assert (low, high) == pytest.approx(clopper_pearson(10, 30), abs=1e-6)
    assert clopper_pearson(0.0, 30)[0] == 0
    assert clopper_pearson(30.0, 30)[1] == 1


# Smoothed classifiers: the upper end.


class Halfspace(nn.Module):
    def forward(self, x):
        return torch.stack([torch.zeros_like(x[:, 0]), x[:, 0]], 1)


def test_smoothing_of_a_halfspace_is_the_closed_form():
    """P(label) at x0 is Phi(x0 / sigma); the worst in the ball is Phi((x0 - r) / sigma)."""
    x0 = torch.tensor([0.1, 0.4, 0.8, 1.5])
    x, sigma, radius = torch.stack([x0, 0 * x0], 1), 0.5, 0.3
    smooth, y = Smoothed(Halfspace(), sigma), torch.ones(4, dtype=torch.long)
    bound = Smoothing(votes=50_000).worst_margin(smooth, x, y, Ball("l2", radius))
    exact = 1 - 2 * torch.special.ndtr((x0 - radius) / sigma)
    assert bool((bound >= exact).all())
    assert torch.allclose(bound, exact, atol=0.05)
    linf = Smoothing(votes=50_000).worst_margin(smooth, x, y, Ball("linf", radius / 2**0.5))
    assert torch.allclose(linf, bound, atol=1e-6)


def test_a_smoothed_classifier_is_bracketed_with_its_confidence():
    x, y = nets.blobs(20)
    smooth = Smoothed(nets.trained(), 0.15, votes=50)
    found = advlab.evaluate(smooth, x, y, Ball("l2", 0.12), APGD(steps=5))
    assert found.clean_error <= found.certified_error
    assert found.robust_error <= found.certified_error < 0.3
    assert found.certificates["smoothing"] >= 15
    (text,) = [one.text for one in found.check_warnings if one.kind == "confidence"]
    assert "0.99998" in text
    assert "softmax" not in {one.kind for one in found.check_warnings}
    # Points near the rim are wrong in some calls: the upper end counts that, row by row.
    bound = Smoothing().worst_margin(smooth, x, y, Ball("l2", 0.12))
    per_row = smooth.error_bound(bound)
    points = advlab.attack(smooth, x, y, Ball("l2", 0.12), SHORT, quiet=True).x
    assert bool((random_nets.error_probability(smooth, points, y, 100) <= per_row + 0.1).all())


def test_smoothing_refuses_other_models_and_sets():
    x, y = nets.blobs(3)
    assert "no smoothed classifier" in Smoothing().refuses(nets.trained(), BALL, x)
    with pytest.raises(AdvlabError, match="no smoothed classifier"):
        Smoothing().worst_margin(nets.trained(), x, y, BALL)


def test_the_scores_of_a_smoothed_model_are_vote_shares_with_a_gradient():
    x, _ = nets.blobs(5)
    smooth = Smoothed(nets.trained(), 0.3, batch=32, votes=40)
    leaf = x.clone().requires_grad_()
    shares = smooth(leaf)
    assert torch.allclose((40 * shares).round(), 40 * shares, atol=1e-3)
    assert torch.allclose(shares.sum(1), torch.ones(5))
    assert float(torch.autograd.grad(shares[:, 0].sum(), leaf)[0].abs().sum()) > 0
    rng = generator("votes")
    counts, _ = smooth.counts(x, 2000, rng)
    assert torch.allclose(smooth(x), counts / 2000, atol=0.3)
