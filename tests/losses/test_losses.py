"""Per-example losses against plain formulas, and the guard around a model."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from advlab.core.errors import AdvlabError
from advlab.losses import (
    LIPSCHITZ,
    LOSSES,
    cross_entropy,
    evaluating,
    logistic,
    margin,
    resolve,
    squared,
)


def test_cross_entropy_is_the_usual_one_where_the_usual_one_is_right():
    torch.manual_seed(0)
    z, y = torch.randn(50, 4, dtype=torch.float64, requires_grad=True), torch.randint(0, 4, (50,))
    ours, usual = cross_entropy(z, y), F.cross_entropy(z, y, reduction="none")
    torch.testing.assert_close(ours, usual)
    (a,) = torch.autograd.grad(ours.sum(), z, retain_graph=True)
    (b,) = torch.autograd.grad(usual.sum(), z)
    torch.testing.assert_close(a, b)


def test_cross_entropy_of_a_confident_example_is_small_but_not_zero():
    z = torch.tensor([[40.0, 0.0]], requires_grad=True)
    loss = cross_entropy(z, torch.tensor([0]))
    assert float(loss.detach()) == pytest.approx(
        torch.tensor(-40.0, dtype=torch.float64).exp().item()
    )
    (grad,) = torch.autograd.grad(loss.sum(), z)
    assert float(grad[0, 0]) == -float(grad[0, 1]) != 0


def test_losses_of_one_output():
    f = torch.tensor([0.5, -2.0], dtype=torch.float64)
    y = torch.tensor([1.0, -1.0], dtype=torch.float64)
    torch.testing.assert_close(squared(f[:, None], y), (f - y) ** 2)
    torch.testing.assert_close(logistic(f, y), torch.log1p(torch.exp(-y * f)))
    torch.testing.assert_close(margin(f, y), -y * f)
    z = torch.tensor([[1.0, 3.0, 2.0]])
    assert float(margin(z, torch.tensor([1]))) == -1.0
    assert float(margin(z, torch.tensor([0]))) == 2.0


def test_mistakes_are_named():
    with pytest.raises(AdvlabError, match="one output"):
        squared(torch.zeros(3, 2), torch.zeros(3))
    with pytest.raises(AdvlabError, match="loss must be one of"):
        resolve("hinge2")


def test_each_module_gets_its_own_mode_back():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2)))
    model[1].eval()
    with evaluating(model):
        assert not any(module.training for module in model.modules())
    assert [m.training for m in model.modules()] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("pseudo_huber", lambda u: (1 + u**2).sqrt() - 1),
        ("huber", lambda u: torch.where(u.abs() <= 1, u**2 / 2, u.abs() - 0.5)),
        ("log_cosh", lambda u: u.cosh().log()),
    ],
)
def test_losses_of_a_difference_are_their_formulas(name, formula):
    f = torch.linspace(-20, 20, 801, dtype=torch.float64)
    y = torch.full_like(f, 0.3)
    torch.testing.assert_close(LOSSES[name](f, y), formula(f - y), rtol=1e-10, atol=1e-12)
    assert float(LOSSES[name](y, y).abs().max()) < 1e-15
    # Small differences keep their digits where the usual form is rounded to 0.
    if name == "pseudo_huber":
        tiny = LOSSES[name](torch.tensor([1e-9], dtype=torch.float64), torch.zeros(1).double())
        assert float(tiny) == pytest.approx(0.5e-18)


@pytest.mark.parametrize("name", LIPSCHITZ)
def test_lipschitz_constants_are_reached_and_the_losses_are_convex(name):
    f = torch.linspace(-30, 30, 2001, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(LOSSES[name](f, torch.ones_like(f)).sum(), f)
    assert float(slope.abs().max()) == pytest.approx(LIPSCHITZ[name], rel=1e-3)
    assert float(slope.abs().max()) <= LIPSCHITZ[name] + 1e-12
    assert (slope.diff() >= -1e-12).all()
