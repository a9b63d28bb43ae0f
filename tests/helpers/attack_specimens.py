"""One of each attack, with inputs and losses that suit it: for the laws and single tests."""

import torch
from torch import nn

from advlab.attacks import (
    APGD,
    BPDA,
    EAD,
    FAB,
    GTA,
    PGD,
    SPSA,
    Attack,
    AutoAttack,
    CarliniWagner,
    CoordinateAscent,
    Exact,
    FakeSignal,
    Grid,
    HopSkipJump,
    RayS,
    Square,
    Transfer,
)
from advlab.losses import ModelLoss, cross_entropy, squared
from advlab.threats import Cap

FEWER: dict[type[Attack], Attack] = {
    APGD: APGD(steps=12),
    AutoAttack: AutoAttack(steps=4, queries=8),
    FAB: FAB(steps=10),
    CarliniWagner: CarliniWagner(steps=10, rounds=2),
    EAD: EAD(steps=10, rounds=2),
    CoordinateAscent: CoordinateAscent(inner=PGD(steps=5), rounds=2),
    # Groups of coordinates: squares are about the shape of an image.
    Square: Square(queries=40, squares=False),
    SPSA: SPSA(steps=4, samples=4),
    HopSkipJump: HopSkipJump(queries=60, probes=10),
    RayS: RayS(queries=60),
    BPDA: BPDA(inner=PGD(steps=5, climb="margin")),
}
"""Attacks whose defaults take many steps."""


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def inputs(seed: int, threat=None, rows: int = 6, d: int = 5) -> torch.Tensor:
    x = torch.randn(rows, d, generator=seeded(seed), dtype=torch.float64).clamp(-2, 2)
    return x / x.norm(dim=1, keepdim=True) if isinstance(threat, Cap) else x


def network(seed: int, d: int = 5, classes: int = 3) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(d, 16), nn.Tanh(), nn.Linear(16, classes)).double()


def losses(seed: int, rows: int = 6, d: int = 5):
    """A network's loss for every attack; Exact is about linear scores and gets one."""
    y = torch.randint(0, 3, (rows,), generator=seeded(seed))
    w = torch.randn(d, generator=seeded(seed + 1), dtype=torch.float64)
    target = torch.randn(rows, generator=seeded(seed + 2), dtype=torch.float64)
    return {
        False: ModelLoss(network(seed, d), y, cross_entropy),
        True: ModelLoss(lambda x: x @ w, target, squared),
    }


def loss_for(attack: type[Attack], seed: int, rows: int = 6) -> ModelLoss:
    return losses(seed, rows, dimension(attack))[attack is Exact]


def dimension(attack: type[Attack]) -> int:
    return 3 if attack is Grid else 5


def specimen(attack: type[Attack], d: int | None = None) -> Attack:
    """The attack with its defaults where it has them."""
    if attack is Transfer:
        return Transfer(source=nn.Sequential(nn.Flatten(), network(99, d or 5)))
    if attack is GTA:
        return GTA(surrogate=nn.Sequential(nn.Flatten(), network(99, d or 5)))
    if attack is FakeSignal:
        # Patches of length one: a row of any shape has as many as it has numbers.
        return FakeSignal(direction=(1.0,))
    if attack in FEWER:
        return FEWER[attack]
    return Grid(points=40, refinements=5) if attack is Grid else attack()


class Recorder(nn.Module):
    """A model that remembers what it was shown."""

    def __init__(self, model):
        super().__init__()
        self.model, self.seen = model, []

    def forward(self, x):
        self.seen.append(x.detach().clone())
        return self.model(x)

    @property
    def rows(self) -> int:
        return sum(len(x) for x in self.seen)


def trained(seed: int, classes: int = 4, d: int = 6, rows: int = 60):
    """A network fitted to clusters, a little: right on most rows, not on all."""
    torch.manual_seed(seed)
    centers = 1.5 * torch.randn(classes, d).double()
    y = torch.arange(rows) % classes
    x = centers[y] + torch.randn(rows, d).double()
    model = nn.Sequential(nn.Linear(d, 24), nn.ReLU(), nn.Linear(24, classes)).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(80):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model, x, y
