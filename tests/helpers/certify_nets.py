"""Small networks of every kind that certificates must read, drawn from a seed."""

import torch
from torch import Tensor, nn

from advlab.losses import ModelLoss, margin
from advlab.models import Linear, Normalised, TwoLayer
from advlab.papers.convergence.models import DeepReLU
from advlab.papers.generalization.models import LazyNet
from advlab.threats import Ball

PIXELS, FLAT = (2, 6, 6), (5,)
RADII = {"linf": 0.05, "l2": 0.25, "l1": 0.5}


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 3, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(3)
        self.second = nn.Conv2d(3, 2, 3, padding=1)
        self.act, self.drop = nn.ReLU(inplace=True), nn.Dropout(0.5)
        self.top = nn.Linear(8, 4)

    def forward(self, x):
        body = self.second(self.act(self.norm(self.first(x))))
        state = nn.functional.avg_pool2d((body + x).relu(), 3)
        return self.top(self.drop(state).flatten(1))


class Forked(nn.Module):
    """Joins, cuts, maxima, clamps and absolute values."""

    def __init__(self):
        super().__init__()
        self.first, self.top = nn.Linear(5, 8), nn.Linear(12, 3)

    def forward(self, x):
        left, right = self.first(x).chunk(2, dim=1)
        both = torch.cat([torch.maximum(left, right), left.clamp(-0.2, 0.3), right.abs()], 1)
        return self.top(both[:, torch.arange(12).flip(0)])


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6), nn.LeakyReLU(0.1),
        nn.Identity(), nn.Linear(6, 3),
    )  # fmt: skip


def conv() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(4, 4, 2, groups=2, dilation=2, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4),
    )  # fmt: skip


def pooled() -> nn.Module:
    body = [nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(3, stride=1, padding=1)]
    return nn.Sequential(*body, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 4))


def _advlab(kind: str, seed: int) -> nn.Module:
    rng = torch.Generator().manual_seed(seed)
    if kind == "two_layer":
        return TwoLayer.draw(5, 8, "leaky_relu", rng, init="torch", bias=True)
    if kind == "symmetric":
        net = TwoLayer.draw(5, 8, "relu", rng, init="symmetric", omega=1.0)
        net.weight.data += 0.3 * torch.randn(8, 5, generator=rng, dtype=torch.float64)
        return net
    if kind == "deep_relu":
        return DeepReLU.draw(5, 6, 2, rng)
    if kind == "lazy":
        return LazyNet.draw(5, 6, "relu", rng, delta=-1.0)
    return Linear(torch.randn(5, generator=rng, dtype=torch.float64))


KINDS = {
    "mlp": (mlp, FLAT),
    "conv": (conv, PIXELS),
    "pooled": (pooled, PIXELS),
    "residual": (Residual, PIXELS),
    "forked": (Forked, FLAT),
    "normalised": (lambda: Normalised(conv(), [0.4, 0.5], [0.3, 0.2]), PIXELS),
    "two_layer": (None, FLAT),
    "symmetric": (None, FLAT),
    "deep_relu": (None, FLAT),
    "lazy": (None, FLAT),
}


def network(kind: str, seed: int) -> tuple[nn.Module, Tensor, Tensor]:
    """A network in train mode with batch statistics that are not the default, and examples."""
    torch.manual_seed(seed)
    make, shape = KINDS[kind]
    net = _advlab(kind, seed) if make is None else make()
    net = net.double()
    for module in net.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(std=0.2)
            module.running_var.uniform_(0.3, 2.0)
            nn.init.normal_(module.weight)
    x = torch.rand(4, *shape, dtype=torch.float64)
    return net, x, labels(net, x)


def labels(net: nn.Module, x: Tensor) -> Tensor:
    """What the network itself says, and for one row something else."""
    with torch.no_grad():
        scores = ModelLoss(net, x, margin).outputs(x)
    if scores.ndim == 1:
        y = torch.where(scores > 0, 1.0, -1.0).double()
        y[0] = -y[0]
        return y
    y = scores.argmax(1)
    y[0] = (y[0] + 1) % scores.shape[1]
    return y


def balls() -> list[Ball]:
    boxes = (None, (0.0, 1.0))
    return [Ball(norm=norm, radius=r, box=box) for norm, r in RADII.items() for box in boxes]


def sampled_worst(net: nn.Module, x: Tensor, y: Tensor, ball: Ball, draws: int = 200) -> Tensor:
    """The worst margin among uniform draws and their images at the rim."""
    loss, worst = ModelLoss(net, y, margin), torch.full((len(x),), -torch.inf, dtype=x.dtype)
    rng = torch.Generator().manual_seed(0)
    many = x.repeat_interleave(draws, 0)
    inside = ball.sample(many, rng=rng)
    with torch.no_grad():
        for points in (inside, ball.project(many + 5 * (inside - many), many)):
            wide = ModelLoss(net, y.repeat_interleave(draws), margin)
            worst = torch.maximum(worst, wide(points).reshape(len(x), draws).amax(1))
        return torch.maximum(worst, loss(x))
