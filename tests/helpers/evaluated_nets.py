"""Small trained networks, good and bad, for tests of evaluations."""

import time
from functools import cache

import torch
from torch import Tensor, nn

CLASSES, D = 3, 8
CENTERS = torch.tensor(
    [[0.2, 0.8, 0.2, 0.8, 0.5, 0.5, 0.3, 0.6], [0.8, 0.2, 0.8, 0.2, 0.5, 0.5, 0.6, 0.3],
     [0.5, 0.5, 0.2, 0.2, 0.8, 0.8, 0.5, 0.5]]
)  # fmt: skip


def blobs(n: int = 120, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Three clouds in the unit cube, labels in turn."""
    rng = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % CLASSES
    x = CENTERS[y] + 0.12 * torch.randn(n, D, generator=rng)
    return x.clamp(0, 1), y


def bare() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, CLASSES))


@cache
def _state() -> dict[str, Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = bare()
    x, y = blobs(600, seed=1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    return net.state_dict()


def trained() -> nn.Sequential:
    """A network without tricks, right on nearly all of the clouds."""
    net = bare()
    net.load_state_dict(_state())
    return net.eval()


class Around(nn.Module):
    """The network with something before or behind it."""

    def __init__(self, before=lambda x: x, behind=lambda z: z):
        super().__init__()
        self.net, self.before, self.behind = trained(), before, behind

    def forward(self, x: Tensor) -> Tensor:
        return self.behind(self.net(self.before(x)))


def rounded() -> nn.Module:
    """Inputs rounded to a coarse grid: no gradient anywhere."""
    return Around(before=lambda x: (20 * x).round() / 20)


def rippled() -> nn.Module:
    """Fine ripples on the inputs: gradients point at ripples."""
    return Around(before=lambda x: x + 0.02 * torch.sin(800 * x))


def saturated() -> nn.Module:
    """A hard softmax: outputs round to 0 and 1."""
    return Around(behind=lambda z: torch.softmax(100 * z, 1))


def noisy() -> nn.Module:
    return Around(behind=lambda z: z + 0.1 * torch.randn_like(z))


def nan() -> nn.Module:
    return Around(behind=lambda z: z * float("nan"))


def wide() -> nn.Module:
    """Outputs for many more classes than there are."""
    return Around(behind=lambda z: torch.cat([z, z - 9, z - 9], 1))


def slow() -> nn.Module:
    """Two hundredths of a second per pass: time enough to be killed."""

    def wait(x: Tensor) -> Tensor:
        time.sleep(0.02)
        return x

    return Around(before=wait)


def pictures(n: int = 24) -> tuple[Tensor, Tensor]:
    """Images of noise, labelled by the convolutional network itself but for every eighth."""
    x = torch.rand(n, 2, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        y = convolutional()(x).argmax(1)
    return x, torch.where(torch.arange(n) % 8 == 0, (y + 1) % CLASSES, y)


def convolutional() -> nn.Sequential:
    """An untrained network for images of shape (2, 8, 8)."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, CLASSES)
        ).eval()
