"""Run by test_autocast.py in a process of its own, with an instruction set that has bfloat16."""

import pytest
import torch
from torch import Tensor, nn

import advlab
from advlab.attacks import APGD, ATTACKS, FAB, PGD
from advlab.certify import IBP
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, cross_entropy, margin
from advlab.threats import Ball


class Inside(nn.Module):
    """A network whose own forward switches autocast on."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.net(x)


def data() -> tuple[Tensor, Tensor]:
    y = torch.arange(24) % 3
    rng = torch.Generator().manual_seed(0)
    return (0.2 + 0.3 * nn.functional.one_hot(y, 8) + 0.1 * torch.rand(24, 8, generator=rng)), y


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def outer() -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16)


def same_in_both_ways(net: nn.Module, x: Tensor, y: Tensor) -> None:
    ball = Ball("l2", 0.2, (0.0, 1.0))
    for attack in (PGD(steps=5), APGD(steps=5), FAB(steps=3), ATTACKS["square"](queries=10)):
        inside = attack(ModelLoss(Inside(net), y, margin), x, ball, rng=0)
        with outer():
            around = attack(ModelLoss(net, y, margin), x, ball, rng=0)
        assert inside.loss.dtype == around.loss.dtype == x.dtype, attack
        assert torch.equal(inside.x, around.x), attack
        assert ball.contains(around.x, x).all(), attack
    with outer():
        own = PGD(steps=5)(lambda x: margin(net(x).float(), y), x, ball, rng=0)
        nearest = FAB(steps=3).minimum(
            ModelLoss(net, y, margin), x, "l2", (0.0, 1.0), rng=torch.Generator()
        )
    assert ball.contains(own.x, x).all()
    assert nearest.x.dtype == x.dtype


def evaluates(net: nn.Module, x: Tensor, y: Tensor) -> None:
    ball = Ball("linf", 0.1, (0.0, 1.0))
    inside = advlab.evaluate(Inside(net), x, y, ball, "fast")
    with outer():
        around = advlab.evaluate(net, x, y, ball, "fast")
        found = advlab.attack(net, x, y, eps=0.1, quiet=True)
    assert inside.clean_error < 0.2, inside
    assert (around.robust_error, around.clean_error) == (inside.robust_error, inside.clean_error)
    assert around.certified_error is None
    assert "bfloat16" in around.refused["ibp"]
    assert found.loss.dtype == torch.float32


def certificates_refuse(net: nn.Module, x: Tensor, y: Tensor) -> None:
    with outer(), pytest.raises(AdvlabError, match="bfloat16"):
        IBP().worst_margin(net, x, y, Ball("linf", 0.1))


def main() -> None:
    x, y = data()
    net = network()
    with outer():
        assert net(x).dtype == torch.bfloat16
        assert ModelLoss(net, y, cross_entropy)(x).dtype == torch.float32
        about = {"lr": 0.03, "optimizer": torch.optim.Adam, "attack": PGD(steps=2)}
        found = advlab.fit(net, x, y, steps=30, ball=Ball("l2", 0.05), **about)
    # Autocast keeps copies of weights while its context lasts; they must not outlive a step.
    assert found.log.losses()[-1] < 0.5
    assert all(weight.dtype == torch.float32 for weight in net.parameters())
    same_in_both_ways(net, x, y)
    evaluates(net, x, y)
    certificates_refuse(net, x, y)
    print("done")


if __name__ == "__main__":
    main()
