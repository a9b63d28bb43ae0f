"""The practitioner's call: right on linear models, honest about bounds, and critical of itself."""

import itertools

import pytest
import torch
from torch import nn

import advlab
from advlab.attacks import FGM, PGD, Identity
from advlab.certify import certify
from advlab.core.errors import AdvlabError
from advlab.models import Linear
from advlab.threats import Ball


def linear_net(classes: int = 3, d: int = 4) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(d, classes)).double()


def data(n: int = 200, d: int = 4, classes: int = 3):
    rng = torch.Generator().manual_seed(1)
    x = torch.rand(n, d, generator=rng, dtype=torch.float64)
    return x, torch.randint(0, classes, (n,), generator=rng)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
def test_a_linear_model_is_bracketed_by_equal_numbers(norm, box):
    model, (x, y) = linear_net(), data()
    result = advlab.evaluate(model, x, y, Ball(norm=norm, radius=0.2, box=box))
    assert result.certified_error is not None
    assert result.clean_error <= result.robust_error <= result.certified_error
    assert result.certified_error - result.robust_error <= 0.01
    for name in ("clean_error", "robust_error", "certified_error"):
        low, high = result.intervals[name]
        assert low <= getattr(result, name) <= high


def test_the_exact_margin_is_the_largest_over_corners():
    """The linf ball's corners, all of them, cut by the box: brute force."""
    model, (x, y) = linear_net(), data(n=20)
    radius = 0.3
    corners = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=4)), dtype=torch.float64)
    points = (x[:, None] + radius * corners).clamp(0, 1)
    scores = model(points.flatten(0, 1)).unflatten(0, points.shape[:2])
    own = scores.gather(2, y[:, None, None].expand(-1, 16, 1))[..., 0]
    others = scores.masked_fill(nn.functional.one_hot(y, 3).bool()[:, None], -torch.inf).amax(2)
    brute = (others - own).amax(1)
    exact = certify(model, x, y, Ball(norm="linf", radius=radius, box=(0, 1))).bound
    torch.testing.assert_close(exact, brute.detach())


def test_one_output_with_signs():
    model = Linear(torch.tensor([1.0, 0.0], dtype=torch.float64))
    x = torch.tensor([[0.5, 0.0], [2.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    y = torch.tensor([1.0, 1.0, 1.0], dtype=torch.float64)
    result = advlab.evaluate(model, x, y, Ball(norm="l2", radius=1.0))
    assert result.clean_error == pytest.approx(1 / 3)
    assert result.robust_error == result.certified_error == pytest.approx(2 / 3)


def test_no_attack_shows_the_clean_error_and_certificates_may_be_left_out():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    x, y = data()
    ball = Ball(norm="linf", radius=0.3)
    idle = advlab.evaluate(model, x, y, ball, Identity(), certificates=())
    busy = advlab.evaluate(model, x, y, ball, PGD(steps=10), batch=64, certificates=())
    assert idle.robust_error == idle.clean_error
    assert busy.robust_error > busy.clean_error
    assert busy.certified_error is None
    assert "at least" in str(busy)
    assert "no certificate" in str(busy)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_network_lies_between_attack_and_certificate(norm):
    """The exact error of a network with two inputs, by a fine grid over the ball."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 3)).double()
    x, y = data(n=60, d=2)
    ball = Ball(norm=norm, radius=0.1)
    result = advlab.evaluate(model, x, y, ball, "fast", checks=False)
    line = torch.linspace(-0.1, 0.1, 81, dtype=torch.float64)
    moves = torch.cartesian_prod(line, line)
    moves = moves[ball.norm_of(moves) <= 0.1]
    answers = model((x[:, None] + moves).flatten(0, 1)).argmax(1).unflatten(0, (60, len(moves)))
    exact = float((answers != y[:, None]).any(1).double().mean())
    assert result.certified_error is not None
    assert exact <= result.certified_error + 1e-9
    assert exact <= result.robust_error + 1e-9 <= exact + 1 / 60 + 1e-8  # the grid misses a border


class Noisy(nn.Module):
    def forward(self, x):
        return x.flatten(1)[:, :3] + torch.randn(len(x), 3, dtype=x.dtype)


class Masked(nn.Module):
    def forward(self, x):
        return (10 * x.flatten(1)[:, :3]).round()


def test_it_warns_of_its_own_result():
    x, y = data()
    ball = Ball(norm="linf", radius=0.01)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).double().train()
    before = model[1].running_mean.clone()
    assert "train mode" in advlab.evaluate(model, x, y, ball, FGM()).warnings[0]
    assert model.training
    assert torch.equal(model[1].running_mean, before)
    assert "random" in advlab.evaluate(Noisy(), x, y, ball, FGM()).warnings[0]
    assert "exactly zero" in advlab.evaluate(Masked(), x, y, ball, FGM()).warnings[0]
    assert advlab.evaluate(linear_net(), x, y, ball, FGM()).warnings == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": torch.full((200,), 3)}, "labels must be 0 .. 2"),
        ({"x": torch.full((200, 4), 2.0, dtype=torch.float64)}, "declared box"),
        ({"x": torch.zeros(199, 4, dtype=torch.float64)}, "x of shape"),
        ({"x": torch.full((200, 4), float("nan"), dtype=torch.float64)}, "finite"),
    ],
)
def test_bad_input_is_named(change, message):
    x, y = data()
    settings = {"x": x, "y": y} | change
    ball = Ball(norm="linf", radius=0.1, box=(0, 1))
    with pytest.raises(AdvlabError, match=message):
        advlab.evaluate(linear_net(), settings["x"], settings["y"], ball)
