"""Certificates for more than one class: bounds of each output, from those of single outputs."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..certify import CERTIFICATES, Certificate, Certified, certify
from ..threats import Threat

Model = Callable[[Tensor], Tensor]
RANGES = ("linear", "lipschitz", "ibp", "crown_ibp", "crown")
"""Certificates whose bounds are good in value and not only in sign, cheapest first."""
AT_ONCE = 64
MOST_COLUMNS = 16
"""Outputs from which on ranges are not asked for: each takes two runs of every certificate."""


class OneOutput(nn.Module):
    """One output of a model of several."""

    def __init__(self, model: Model, column: int, columns: int):
        super().__init__()
        self.model = model
        self.training = getattr(model, "training", False)
        self.register_buffer("choice", torch.eye(columns)[column : column + 1])

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.model(x), self.choice.to(x))  # type: ignore[operator]


def certify_labels(
    model: Model, x: Tensor, y: Tensor, ball: Threat,
    certificates: Sequence[str | Certificate] | None, progress: Callable[[str], None],
) -> Certified:  # fmt: skip
    """Bounds of the worst margin over many labels, max_j of -y_j f_j: of each label in turn.

    Args:
        model: gives one output per label.
        x: examples.
        y: a sign per label, shape (batch, labels).
        ball: the threat set.
        certificates: as for `certify`.
        progress: is told the certificate.
    """
    bound, by = torch.full((len(x),), -torch.inf, dtype=x.dtype), [""] * len(x)
    refused: dict[str, str] = {}
    alive = torch.ones(len(x), dtype=torch.bool)
    for column in range(y.shape[1]):
        one = OneOutput(model, column, y.shape[1])
        found = certify(
            one, x, y[:, column], ball, certificates, alive=alive,
            progress=lambda name, done, given: progress(name),
        )  # fmt: skip
        bound = torch.maximum(bound, found.bound.to(bound))
        by = [new or old for new, old in zip(found.by, by, strict=True)]
        refused |= found.refused
        alive &= found.robust
    return Certified(bound, by, refused)


def largest_distance(
    model: Model, x: Tensor, y: Tensor, ball: Threat,
    certificates: Sequence[str | Certificate] | None, progress: Callable[[str], None],
) -> tuple[Tensor, list[str], dict[str, str]]:  # fmt: skip
    """Upper bounds of |f_j - y_j| over the threat set, from bounds of f_j above and below.

    Args:
        model: gives one output per target.
        x: examples.
        y: the targets, shape (batch,) or (batch, outputs).
        ball: the threat set.
        certificates: as for `certify`; the complete search, which decides signs, is left out.
        progress: is told the certificate.

    Returns:
        The bounds, of the shape of y, infinite where there is none; who gave that of each row; and
        the certificates that refused, and why.
    """
    targets = y[:, None] if y.ndim == 1 else y
    columns, refused = targets.shape[1], dict[str, str]()
    far, by = torch.full_like(targets, torch.inf), [""] * len(x)
    if columns > MOST_COLUMNS:
        return far.reshape(y.shape), by, {"all": f"there are more than {MOST_COLUMNS} outputs"}
    for certificate in _chosen(certificates):
        for column in range(columns):
            one = model if columns == 1 else OneOutput(model, column, columns)
            reason = certificate.refuses(one, ball, x[:1])
            if reason is not None:
                refused[certificate.name] = reason
                break
            for first in range(0, len(x), AT_ONCE):
                rows = slice(first, first + AT_ONCE)
                ends = [
                    certificate.worst_margin(one, x[rows], torch.full_like(y_, sign), ball)
                    for y_ in [targets[rows, column]]
                    for sign in (-1, 1)
                ]
                # Labels -1 and +1 bound f from above and -f from above.
                above, below = ends[0] - targets[rows, column], ends[1] + targets[rows, column]
                far[rows, column] = torch.minimum(far[rows, column], torch.maximum(above, below))
                progress(certificate.name)
        else:
            by = [certificate.name] * len(x)
            if certificate.exact:
                break
    return far.reshape(y.shape), by, refused


def _chosen(certificates: Sequence[str | Certificate] | None) -> list[Certificate]:
    names = RANGES if certificates is None else certificates
    made = [CERTIFICATES[one]() if isinstance(one, str) else one for one in names]
    return [one for one in made if one.name in RANGES or certificates is not None]
