"""Small trained networks that hide their gradients, and what peers break of them."""

import warnings
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # foolbox imports old scipy names
    import eagerpy as ep
    import foolbox as fb
    import foolbox.attacks as fa

CLASSES, D, HIDDEN = 4, 16, 48


def clouds(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Four clouds in the unit cube, labels in turn."""
    centers = torch.rand(CLASSES, D, generator=torch.Generator().manual_seed(5))
    y = torch.arange(n) % CLASSES
    noise = torch.randn(n, D, generator=torch.Generator().manual_seed(seed))
    return (0.25 + 0.5 * centers[y] + 0.12 * noise).clamp(0, 1), y


class Straight(torch.autograd.Function):
    """The sign by value, the identity by gradient: only for training."""

    @staticmethod
    def forward(ctx, z):
        return z.sign()

    @staticmethod
    def backward(ctx, grad):
        return grad


def winners(z: Tensor, share: float = 0.25) -> Tensor:
    """k-winners-take-all (Xiao et al. 2020): all but the largest activations are zero."""
    least = z.topk(max(1, int(share * z.shape[1])), dim=1).values[:, -1:]
    return z * (z >= least)


class Masked(nn.Module):
    """Two hidden layers; `kind` says where the gradient is hidden."""

    def __init__(self, kind: str = "none"):
        super().__init__()
        self.kind = kind
        self.one, self.two = nn.Linear(D, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, CLASSES)

    def act(self, z: Tensor) -> Tensor:
        if self.kind == "sign":
            return Straight.apply(z) if self.training else z.sign()
        if self.kind == "winners":
            return winners(z)
        return z.relu()

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "quantised":
            x = (12 * x).round() / 12
        z = self.out(self.act(self.two(self.act(self.one(x - 0.5)))))
        return (1000 * z).softmax(1) if self.kind == "softmax" and not self.training else z


KINDS = ("softmax", "quantised", "sign", "winners")


@cache
def _state(kind: str) -> dict[str, Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Masked(kind).train()
    x, y = clouds(1200, seed=1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    for _ in range(120):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    return net.state_dict()


def masked(kind: str) -> Masked:
    """A trained network that hides its gradient in this way."""
    net = Masked(kind)
    net.load_state_dict(_state(kind))
    return net.eval()


def broken_by_peers(model: nn.Module, x: Tensor, y: Tensor, norm: str, eps: float) -> dict:
    """Rows that each of foolbox's attacks breaks, by name; the clean errors are among them."""
    fmodel, found = fb.PyTorchModel(model, bounds=(0, 1)), {}
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        for name, attack in peers(norm).items():
            torch.manual_seed(0)
            try:
                _, _, hit = attack(fmodel, ep.astensor(x), ep.astensor(y), epsilons=[eps])
            except (ValueError, RuntimeError, AssertionError):
                continue  # boundary attacks give up where no start is found
            found[name] = hit.raw[0]
    return found


def peers(norm: str) -> dict:
    """foolbox's attacks in this norm, in sizes that take seconds."""
    if norm == "linf":
        return {
            "FGSM": fa.LinfFastGradientAttack(),
            "PGD": fa.LinfPGD(steps=40),
            "DeepFool": fa.LinfDeepFoolAttack(steps=30),
            "HopSkipJump": fa.HopSkipJumpAttack(steps=5, constraint="linf"),
        }
    return {
        "PGD": fa.L2PGD(steps=40),
        "DeepFool": fa.L2DeepFoolAttack(steps=30),
        "CarliniWagner": fa.L2CarliniWagnerAttack(steps=60, binary_search_steps=3),
        "BoundaryAttack": fa.BoundaryAttack(steps=300),
        "HopSkipJump": fa.HopSkipJumpAttack(steps=5),
    }
