"""Row by row: who loses what, and what that proves."""

import json
from dataclasses import replace

import pytest
import torch
from scipy.stats import binom
from torch import nn

import advlab
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.evaluation import compare_states
from advlab.threats import Ball

A = ["clean", "pgd", "pgd", "certified", "", "certified", "pgd", "pgd", "pgd", "pgd"]
B = ["clean", "certified", "", "certified", "", "pgd", "certified", "", "", "certified"]


def test_rows_are_counted_and_bounds_subtracted():
    found = compare_states(A, B)
    assert (found.both, found.neither) == (1, 2)
    assert found.only_a == (1, 2, 6, 7, 8, 9)
    assert found.only_b == (5,)
    assert found.difference == pytest.approx((7 - 2) / 10)
    # A at least 0.7, at most 0.8; B at least 0.2, at most 0.6.
    assert found.bracket == pytest.approx((0.7 - 0.6, 0.8 - 0.2))
    assert found.verdict == "B is more robust than A on these examples: proved"
    assert found.interval[0] < found.difference < found.interval[1]
    json.dumps(found.numbers())
    assert "<table>" in found._repr_html_()


def test_mcnemars_test_is_the_binomial_tail():
    apart = compare_states(["x"] * 9 + [""], [""] * 9 + ["x"])
    assert apart.p_value == pytest.approx(2 * binom.cdf(1, 10, 0.5))
    assert "beyond chance" in apart.verdict
    even = compare_states(["x", ""] * 5, ["", "x"] * 5)
    assert even.p_value == 1
    assert even.verdict == "these examples do not tell the two apart"
    assert compare_states([""] * 3, [""] * 3).p_value == 1


def test_exchanging_the_models_turns_everything_round():
    one, other = compare_states(A, B), compare_states(B, A)
    assert one.only_a == other.only_b
    assert one.difference == -other.difference
    assert one.bracket == pytest.approx(tuple(-end for end in reversed(other.bracket)))
    assert one.interval == pytest.approx(tuple(-end for end in reversed(other.interval)))


def test_two_evaluations_of_the_same_rows():
    rng = generator("compare")
    x = torch.randn(60, 4, generator=rng)
    y = (x[:, 0] > 0).long()

    def net(scale):
        one = nn.Linear(4, 2)
        one.weight.data = torch.tensor([[-1.0, scale, 0, 0], [1.0, -scale, 0, 0]])
        one.bias.data.zero_()
        return one

    ball = Ball("linf", 0.3)
    a, b = (advlab.evaluate(net(scale), x, y, ball, "fast") for scale in (2.0, 0.0))
    found = advlab.compare(a, b)
    assert found.difference == pytest.approx(a.robust_error - b.robust_error)
    assert found.bracket[0] > 0  # a linear model is decided exactly
    with pytest.raises(AdvlabError, match="threat set"):
        advlab.compare(a, replace(b, threat="another"))
    with pytest.raises(AdvlabError, match="same examples"):
        advlab.compare(a, replace(b, broken_by=b.broken_by[:5]))
    with pytest.raises(AdvlabError, match="evaluations"):
        advlab.compare(a, 3)
