"""What one step of Algorithm 1 does to margins: on the balls and on fresh points."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ....core.errors import AdvlabError
from .snapshot import Snapshot


class FreshStep(NamedTuple):
    """Lemma B.13: step >= linear - curvature."""

    step: Float[Tensor, "R k"]
    linear: Float[Tensor, "R k"]
    curvature: Float[Tensor, "R k"]


def margin_steps(
    now: Snapshot, eta: float, moves: Float[Tensor, "R j n d"] | None = None
) -> Float[Tensor, "R points n"]:
    """Lemmas B.9, B.26 (E2): y_i [f(x; W^{t+1}) - f(x; W^t)] at x = x~_i and at each x_i + move.

    At least 0 for smooth phi, within g~_i times `theory.margin_growth` for the others.

    Args:
        now: the networks before the step.
        eta: the step size.
        moves: vectors of the ball, j per example.

    Returns:
        (R, 1 + j, n); first the attacked inputs.
    """
    before, after = _ball_margins(now, eta, moves)
    return after - before


def relative_margin_steps(
    now: Snapshot, eta: float, moves: Float[Tensor, "R j n d"] | None = None
) -> Float[Tensor, "R points n"]:
    """`margin_steps` over the larger of the two margins, so that rounding is of order 1e-16."""
    before, after = _ball_margins(now, eta, moves)
    size = torch.maximum(before.abs(), after.abs())
    return torch.where(size > 0, (after - before) / size, 0.0)


def scaled_margin_steps(now: Snapshot, eta: float, d: int) -> Float[Tensor, "R n"]:
    """`margin_steps` at x~_i over eta d g~_i/n, a number of order one."""
    return margin_steps(now, eta)[:, 0] / (eta * d * now.g / now.x.shape[1])


def fresh_step(
    now: Snapshot, eta: float, x: Float[Tensor, "R k d"], y: Float[Tensor, "R k"]
) -> FreshStep:
    """Lemmas 4.3, B.13 for smooth phi, in their sharpest form: y [f(x; W^{t+1}) - f(x; W^t)] is at
    least (eta/n) sum_i g~_i rho_i <y_i x~_i, y x> - H ||x||^2 ||W^{t+1} - W^t||_F^2/(2 sqrt m).

    rho_i = (1/m) sum_s phi'(<w_s, x>) phi'(<w_s, x~_i>). The paper bounds the last norm by
    eta^2 C2^2 (d/n) G_rob. ||x|| may be that of the part of x in the span of the weights.
    """
    H, m = now.net.activation.lipschitz, now.net.width
    if H is None:
        raise AdvlabError("an activation with a Lipschitz derivative", "one with a kink")
    after = now.after(eta)
    step = y * (after.value(x) - now.net.value(x))
    rho = now.net.activation.dphi(now.net.inner(x)) @ now.slope.mT / m
    linear = eta * (rho * _pulls(now, x, y)).mean(2)
    move = (after.weight - now.net.weight).flatten(1).square().sum(1)
    curvature = H * x.square().sum(2) * move[:, None] / (2 * math.sqrt(m))
    return FreshStep(step, linear, curvature)


def secants(now: Snapshot, eta: float, x: Float[Tensor, "R k d"]) -> Float[Tensor, "R k n"]:
    """Proposition B.24: lambda_i(x) = (1/m) sum_s secant_s phi'(<w_s, x~_i>), in [0, 1].

    secant_s is the slope of phi between <w_s^t, x> and <w_s^{t+1}, x>.
    """
    phi, dphi = now.net.activation.phi, now.net.activation.dphi
    here, there = now.net.inner(x), now.after(eta).inner(x)
    secant = torch.where(here == there, dphi(here), (phi(there) - phi(here)) / (there - here))
    return secant @ now.slope.mT / now.net.width


def secant_step(
    now: Snapshot, eta: float, x: Float[Tensor, "R k d"], y: Float[Tensor, "R k"]
) -> Float[Tensor, "R k"]:
    """(eta/n) sum_i g~_i lambda_i(x) <y_i x~_i, y x>, which is y [f(x; W^{t+1}) - f(x; W^t)]
    to the last digits."""
    return eta * (secants(now, eta, x) * _pulls(now, x, y)).mean(2)


def _pulls(now: Snapshot, x: Tensor, y: Tensor) -> Float[Tensor, "R k n"]:
    """g~_i <y_i x~_i, y x>"""
    products = (y[:, :, None] * x) @ (now.data.y[:, :, None] * now.x).mT
    return now.g[:, None] * products


def _ball_margins(now: Snapshot, eta: float, moves: Tensor | None) -> tuple[Tensor, Tensor]:
    """Margins (R, 1 + j, n) at x~_i and at the x_i + move, before and after the step."""
    points = now.x[:, None]
    if moves is not None:
        points = torch.cat([points, now.data.x[:, None] + moves], dim=1)
    rows, shape = points.flatten(1, 2), points.shape[:3]
    before, after = (
        now.data.y[:, None] * net.value(rows).reshape(shape) for net in (now.net, now.after(eta))
    )
    return before, after
