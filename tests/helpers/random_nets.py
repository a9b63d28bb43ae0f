"""Models that are random in eval mode, and the truth about them by many draws."""

import evaluated_nets as nets
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from advlab.losses import is_error, margin


class DropoutLeftOn(nn.Module):
    """A trained network whose dropout is on in eval mode too."""

    def __init__(self, p: float = 0.5):
        super().__init__()
        self.net, self.p = nets.trained(), p

    def forward(self, x: Tensor) -> Tensor:
        return self.net[3](F.dropout(self.net[:3](x), self.p, training=True))


class ConstantAndNoise(nn.Module):
    """The same answer everywhere, and noise on it: an attack can find nothing but luck."""

    def forward(self, x: Tensor) -> Tensor:
        scores = torch.zeros(len(x), 2)
        scores[:, 0] = 3.5
        return scores + torch.randn_like(scores)


class NoisyInput(nn.Module):
    """One draw of noise for all rows of a batch."""

    def __init__(self, width: float = 0.15):
        super().__init__()
        self.net, self.width = nets.trained(), width

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x + self.width * torch.randn_like(x[:1]))


def error_probability(model, x: Tensor, y: Tensor, draws: int = 400) -> Tensor:
    """Per row, the share of draws that are wrong."""
    with torch.no_grad():
        return torch.stack([is_error(margin(model(x), y)) for _ in range(draws)]).double().mean(0)
