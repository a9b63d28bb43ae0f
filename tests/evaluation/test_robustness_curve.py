"""A bracket at every radius: exact for a linear model, sound and ordered for a network."""

import json

import pytest
import torch
from torch import nn

import advlab
from advlab.attacks import PGD
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, margin
from advlab.report.robustness import robustness_chart
from advlab.threats import Ball

RNG = generator("robustness curve")
X = torch.randn(40, 6, generator=RNG, dtype=torch.float64)
W = torch.randn(3, 6, generator=RNG, dtype=torch.float64)
Y = (X @ W.T + 0.5 * torch.randn(40, 3, generator=RNG, dtype=torch.float64)).argmax(1)


def linear():
    net = nn.Linear(6, 3, bias=False).double()
    net.weight.data.copy_(W)
    return net


def network():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3)).double()
    advlab.fit(net, X, Y, steps=150, lr=0.05, optimizer=torch.optim.Adam)
    return net


@pytest.mark.parametrize(("norm", "dual"), [("linf", 1), ("l2", 2), ("l1", float("inf"))])
def test_a_linear_model_has_the_distance_of_its_hyperplanes(norm, dual):
    """min over rivals of (z_y - z_k) / ||w_y - w_k||_dual, whatever the attack says."""
    z = X @ W.T
    gaps = z.gather(1, Y[:, None]) - z
    slopes = torch.linalg.vector_norm(W[Y][:, None] - W[None], dual, dim=2)
    distance = torch.where(slopes > 0, gaps / slopes, float("inf")).amin(1).clamp(min=0)
    radii = [0.05, 0.2, 0.5]
    found = advlab.curve(linear(), X, Y, norm, radii=radii)
    for one in found.points[1:]:
        assert one.at_least == pytest.approx(float((distance <= one.eps).double().mean()))
        assert one.at_most == one.at_least
    assert (found.robust_to <= distance + 1e-9).all()
    assert (found.broken_at >= distance - 1e-9).all()


def test_a_network_is_bracketed_between_what_is_found_and_what_is_proved():
    net = network()
    found = advlab.curve(net, X, Y, "l2")
    assert (found.robust_to <= found.broken_at).all()
    assert len(found.radii) > 5
    errors = [(one.at_least, one.at_most) for one in found.points]
    assert errors == sorted(errors)
    assert all(low <= high for low, high in errors)
    assert found.at(0).at_least == found.at(0).at_most
    for eps in (found.radii[3], found.radii[8]):
        attacked = PGD(steps=50, restarts=3)(ModelLoss(net, Y, margin), X, Ball("l2", eps), rng=0)
        broken = attacked.loss >= 0
        assert not (broken & (found.robust_to >= eps)).any()  # what is proved is not broken
        assert found.at(eps).at_least >= float(broken.double().mean()) - 0.03


def test_what_is_broken_at_a_radius_has_a_wrong_answer_there():
    net = network()
    found = advlab.curve(net, X, Y, "linf", radii=[0.1, 0.3], certificates=())
    assert (found.robust_to == 0).all()
    assert found.at(0.3).at_most == 1
    result = advlab.evaluate(net, X, Y, Ball("linf", 0.3), "standard", certificates=())
    assert abs(found.at(0.3).at_least - result.robust_error) <= 1 / 40


def test_the_table_has_intervals_and_goes_into_json_and_a_chart():
    found = advlab.curve(linear(), X, Y, "linf", radii=[0.1, 0.2])
    rows = found.table()
    assert [row["eps"] for row in rows] == [0, 0.1, 0.2]
    assert all(row["low"] <= row["at_least"] <= row["at_most"] <= row["high"] for row in rows)
    json.loads(json.dumps(found.numbers()))
    chart = robustness_chart(rows, found.norm, found.n).to_dict()
    assert len(chart["layer"]) == 3
    assert "at least" in str(found)
    assert "<table>" in found._repr_html_()


@pytest.mark.parametrize("radii", [[], [0.0], [-1.0], [float("nan")], ["a"]])
def test_nonsense_radii_are_refused_in_a_line(radii):
    with pytest.raises(AdvlabError):
        advlab.curve(linear(), X, Y, radii=radii)


def test_a_model_that_never_errs_needs_radii():
    sure = lambda x: torch.stack([x.sum(1) * 0 + 1, x.sum(1) * 0], 1)  # noqa: E731
    with pytest.raises(AdvlabError, match="radii"):
        advlab.curve(sure, X, torch.zeros(40).long())
