"""One line: `advlab.attack`, with defaults that are told, and what notebooks show."""

import numpy as np
import pytest
import torch
from torch import nn

import advlab
from advlab.attacks import PGD, Attack
from advlab.core.errors import AdvlabError
from advlab.losses import margin
from advlab.threats import Ball


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).eval()


@pytest.fixture
def data(net):
    x = torch.rand(40, 6, generator=torch.Generator().manual_seed(1))
    return x, net(x).argmax(1)


def test_the_answer_lies_in_the_ball_and_broken_is_what_the_model_gets_wrong(net, data, capsys):
    x, y = data
    found = advlab.attack(net, x, y, eps=0.1)
    assert Ball("linf", 0.1, box=(0, 1)).contains(found.x, x).all()
    with torch.no_grad():
        assert torch.equal(found.broken, ~(margin(net(found.x), y) < 0))
    assert 0 < found.broken.sum() < 40
    told = capsys.readouterr().err
    assert "linf" in told
    assert "0.1" in told
    assert "box" in told
    assert "fast (APGD cross entropy, APGD DLR)" in told


def test_it_breaks_what_evaluate_breaks_with_the_same_attack(net, data):
    x, y = data
    ball = Ball("l2", 0.3, box=(0, 1))
    found = advlab.attack(net, x, y, ball, "standard", quiet=True)
    judged = advlab.evaluate(net, x, y, ball, certificates=(), checks=False)
    assert float(found.broken.double().mean()) == pytest.approx(judged.robust_error)


def test_arrays_seeds_and_attacks_of_ones_own(net, data, capsys):
    x, y = data

    class Corner(Attack):
        def search(self, best, threat, rng):
            best.value(threat.maximiser(torch.ones_like(best.x), best.x))

    first = advlab.attack(net, x.numpy(), y.tolist(), eps=0.1, attack=Corner(), quiet=True)
    assert torch.equal(first.x.sub(x).abs().amax(1) > 0, ~torch.isclose(first.x, x).all(1))
    assert capsys.readouterr().err == ""
    again = [advlab.attack(net, x, y, eps=0.1, attack=PGD(), rng=3, quiet=True) for _ in range(2)]
    assert torch.equal(again[0].x, again[1].x)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "eps, or a threat set"),
        ({"eps": 0.1, "ball": Ball("linf", 0.1)}, "not both"),
        ({"eps": -1.0}, "radius"),
        ({"eps": 0.1, "attack": "nothing"}, "the name of a suite or an attack"),
    ],
)
def test_what_is_missing_or_double_is_one_line(net, data, more, words):
    with pytest.raises(AdvlabError, match=words):
        advlab.attack(net, *data, **more)


def test_inputs_outside_the_unit_box_get_none(net, data, capsys):
    x, y = data
    advlab.attack(net, 3 * x, y, eps=0.1)
    assert "box=None" in capsys.readouterr().err


def test_the_points_are_saved_whole_and_read_back(net, data, tmp_path):
    x, y = data
    found = advlab.attack(net, x, y, eps=0.1, quiet=True)
    path = found.save(tmp_path / "adv.npz", y=y)
    with np.load(path) as saved:
        kept = dict(saved)
    assert sorted(kept) == ["broken", "loss", "x", "y"]
    assert np.array_equal(kept["x"], found.x.numpy())
    assert np.array_equal(kept["broken"], found.broken.numpy())
    with pytest.raises(AdvlabError, match="takes a file"):
        found.save(tmp_path / "adv.npz" / "below.npz")


def test_evaluate_keeps_every_perturbed_input_if_asked(net, data):
    x, y = data
    ball = Ball("linf", 0.1, box=(0, 1))
    judged = advlab.evaluate(net, x, y, ball, "fast", points=True)
    found = judged.adversarial
    assert float(found.broken.double().mean()) == pytest.approx(judged.robust_error)
    assert ball.contains(found.x, x).all()
    with torch.no_grad():
        assert torch.equal(found.broken, ~(margin(net(found.x), y) < 0))
    assert advlab.evaluate(net, x, y, ball, "fast").adversarial is None


def test_notebooks_show_tables_of_text(net, data):
    x, y = data
    found = advlab.attack(net, x, y, eps=0.1, quiet=True)
    assert "(a lower bound)" in found._repr_html_()
    judged = advlab.evaluate(net, x, y, Ball("linf", 0.1), "fast")
    assert "robust error at least" in judged._repr_html_()
    trained = advlab.fit(net, x, y, steps=2, lr=0.1)
    assert "finished" in trained._repr_html_()
