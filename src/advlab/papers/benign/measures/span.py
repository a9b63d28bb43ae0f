"""Where attacked inputs lie: near the span of the data, against the mean, true to mu."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from .snapshot import Snapshot


def span_distance(now: Snapshot) -> Float[Tensor, "R n"]:
    """Lemmas 4.1, B.10, B.27: dist(x~_i, span{x_k}), at most min(omega sqrt(m d)/eta, alpha)."""
    move, basis = now.x - now.data.x, torch.linalg.qr(now.data.x.mT).Q
    # Twice, so that what is left has no rounding of the part that went.
    for _ in range(2):
        move = move - (move @ basis) @ basis.mT
    return move.norm(dim=2)


def perturbation_alignment(now: Snapshot) -> Float[Tensor, "R n"]:
    """Section 4.1: cos(y_i (x~_i - x_i), -sum_k y_k x_k); 0 where x~_i is x_i."""
    y = now.data.y[:, :, None]
    mean = (y * now.data.x).sum(1, keepdim=True)
    return F.cosine_similarity(y * (now.x - now.data.x), -mean, dim=2, eps=1e-300)


def signal_products(now: Snapshot) -> Float[Tensor, "R n"]:
    """Lemmas B.11, B.28: <mu, y_i x~_i>/||mu||^2, in [1/3, 3] on C and [-3, -1/3] on N."""
    along = (now.x @ now.mu[:, :, None])[:, :, 0]
    return now.data.y * along / now.mu.square().sum(1, keepdim=True)
