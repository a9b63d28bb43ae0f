"""Lottery sets against plain loops, and their expectations against exact laws and Monte Carlo."""

import math

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.papers.purification.measures import (
    TicketRules,
    expected_main_text,
    expected_potential,
    expected_sure,
    main_text,
    ordinary,
    ordinary_plus,
    ordinary_twice_plus,
    potential,
    potential_plus,
    share_within,
    sure,
    sure_plus,
    tickets_kept,
)

R, WIDTH, D, K = 2, 30, 12, 3
RULES = TicketRules(d=D, c0=0.4, gamma=0.6, xi2=1.02, few=3)


def some(*shape: int, name: object = "A") -> torch.Tensor:
    return torch.randn(*shape, generator=generator("tickets", name), dtype=torch.float64)


# Scales from neuron to neuron, so that every set has members and others.
A = some(R, WIDTH, D) * torch.linspace(0.1, 2, WIDTH).double()[:, None]
NORM, STAR, SW, BIAS = A.norm(dim=-1), some(R, D, name="star"), 0.9, 0.4


def plain(r: int, i: int) -> dict[str, object]:
    """Definitions B.1 and B.3 word by word for one neuron."""
    row, log_d = A[r, i].tolist(), math.log(D)
    c1, c2 = 2 + 2 * (1 - 0.6) * 0.4, 0.6 * 0.4
    beta, norm2 = 1 / (math.sqrt(K) * 1.02**10), sum(a * a for a in row)
    low, high = (c1 - c2) * SW**2 * log_d, (c1 + c2) * SW**2 * log_d
    signed = [(a > 0) == (float(s) > 0) for a, s in zip(row, STAR[r], strict=True)]
    return {
        "pot": [a * a >= low for a in row],
        "sure": [
            row[j] ** 2 >= high and all(row[o] ** 2 < low for o in range(D) if o != j) and signed[j]
            for j in range(D)
        ],
        "pot+": [abs(a) >= K * BIAS / (D * beta) for a in row],
        "sure+": [row[j] ** 2 >= 4 * K * BIAS**2 and signed[j] for j in range(D)],
        "ept": norm2 <= 2 * SW**2 * D
        and sum(a * a >= low for a in row) <= 3
        and sum(a * a >= 2 * SW**2 * math.sqrt(log_d) for a in row) <= 2 ** -math.sqrt(log_d) * D
        and sum(abs(a) <= SW / log_d for a in row) >= 0.25 * D / log_d,
        "ept+": norm2 <= SW**2 * D / log_d**2 and sum(abs(a) >= SW / log_d for a in row) <= 3,
        "ept++": math.sqrt(norm2) <= SW / beta,
    }


def test_the_sets_are_those_of_the_definitions():
    found = {
        "pot": potential(A, RULES, SW),
        "sure": sure(A, STAR, RULES, SW),
        "pot+": potential_plus(A, RULES, K, BIAS),
        "sure+": sure_plus(A, STAR, K, BIAS),
        "ept": ordinary(A, NORM, RULES, SW),
        "ept+": ordinary_plus(A, NORM, RULES, SW),
        "ept++": ordinary_twice_plus(NORM, RULES, K, SW),
    }
    for name, sets in found.items():
        assert 0 < int(sets.sum()) < sets.numel(), name
        for r in range(R):
            for i in range(WIDTH):
                assert sets[r, i].tolist() == plain(r, i)[name], (name, r, i)


def test_the_constants_of_the_rules():
    rules = TicketRules.of(256, 1280, gamma=0.05)
    assert 256 ** (1 + rules.c0) == pytest.approx(1280)
    assert rules.c1 == pytest.approx(2 + 2 * 0.95 * rules.c0)
    # The bias of the schedule gives its own scale back.
    assert rules.scale(math.sqrt(rules.c1) * 0.01 * math.sqrt(math.log(256))) == pytest.approx(0.01)
    with pytest.raises(AdvlabError, match="more neurons"):
        TicketRules.of(256, 200)


def test_expectations_are_binomial_and_agree_with_drawn_starts():
    rules, width = TicketRules(d=40, c0=0.3, gamma=0.5), 300
    draws = some(400, width, 40, name="draws") * 0.2
    star = some(400, 40, name="stars")
    for sets, law in (
        (potential(draws, rules, 0.2), expected_potential(rules, width)),
        (sure(draws, star, rules, 0.2), expected_sure(rules, width)),
    ):
        counts = sets.sum(1).double()
        assert abs(float(counts.mean()) - law.mean) < 4 * law.deviation_of_mean / math.sqrt(400)
        assert float(counts.std()) == pytest.approx(law.deviation, rel=0.03)
        means = counts.mean(1)
        assert float(means.std()) == pytest.approx(law.deviation_of_mean, rel=0.15)
        z = law.sigmas(sets)
        torch.testing.assert_close(z, (means - law.mean) / law.deviation_of_mean)
        assert float(z.abs().max()) < 4.5
        # A start with another scale is found out.
        wrong = potential(1.3 * draws[:1], rules, 0.2)
        assert float(expected_potential(rules, width).sigmas(wrong).abs()) > 4


@pytest.mark.parametrize(("d", "width", "measured"), [(256, 1280, 0.12), (1024, 8192, 0.09)])
def test_counts_of_a_prototype_are_within_4_sigma(d, width, measured):
    law = expected_sure(TicketRules.of(d, width, gamma=0.05), width)
    assert abs(measured - law.mean) < 4 * law.deviation_of_mean
    assert law.mean < 1


def test_the_main_text_shares():
    draws = some(30, 400, 50, name="main") * 0.3
    found, (some_of, one_of) = main_text(draws, 0.3), expected_main_text(50)
    for share, p in ((found.some, some_of), (found.one, one_of)):
        assert abs(float(share.mean()) - p) < 4 * math.sqrt(p * (1 - p) / 12_000)
    unit = 0.3**2 * math.log(50)
    flags = [[a * a >= 2.01 * unit for a in row] for row in draws[0].tolist()]
    assert float(found.some[0]) == pytest.approx(sum(map(any, flags)) / 400)
    single = [
        max(a * a for a in row) >= 2.02 * unit and sum(flag) == 1
        for row, flag in zip(draws[0].tolist(), flags, strict=True)
    ]
    assert float(found.one[0]) == pytest.approx(sum(single) / 400)


def test_persistence_and_kept_tickets():
    first = torch.tensor([[[1, 1], [1, 0]], [[0, 0], [0, 0]]]).bool()
    second = torch.tensor([[[1, 0], [1, 1]], [[1, 1], [0, 0]]]).bool()
    assert float(share_within(first, second)[0]) == pytest.approx(2 / 3)
    assert bool(share_within(first, second)[1].isnan())
    now = torch.tensor([[3.0, 1.0], [-1.0, 2.0], [1.0, 0.0]]).double()
    end = torch.tensor([[1.0, -2.0], [0.0, 3.0], [5.0, 1.0]]).double()
    keep = torch.tensor([True, True, False])
    assert float(tickets_kept(now, end, keep)) == 0.5
    assert float(tickets_kept(now, end, torch.ones(3).bool())) == pytest.approx(2 / 3)
