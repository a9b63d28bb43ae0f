"""Activations with their derivatives and constants: the only list of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..core.errors import AdvlabError

Curve = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Activation:
    """phi, phi' as autograd takes it (at a kink too), and the constants that proofs ask for.

    A constant that phi does not have is None.
    """

    phi: Curve
    slope: float
    """phi'(0), which fixes the speed of lazy training."""
    dphi: Curve
    bound: float | None = None
    """sup |phi'|: C1 of the convergence paper, whose C2 is `lipschitz`."""
    gamma: float | None = None
    """phi' >= gamma > 0: on the whole line where phi' is Lipschitz, else for z > 0 at least."""
    lipschitz: float | None = None
    """The Lipschitz constant of phi'."""
    c1: float | None = None
    """|z phi'(z) - phi(z)| <= c1 for all z: near homogeneity, with c2 = zeta = 0."""
    together: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None
    """phi and phi' at once, where that costs less than one after the other."""

    def both(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """phi(z) and phi'(z)."""
        return (self.phi(z), self.dphi(z)) if self.together is None else self.together(z)


def _half_relu(z: Tensor) -> Tensor:
    # max(z, 0) written so that its derivative at 0 is 1/2: with the usual 0 a network that starts
    # at zero would never move (generalization, proof of Theorem 4).
    return (z + z.abs()) / 2


def _sigmoid_slope(z: Tensor) -> Tensor:
    s = torch.sigmoid(z)
    return s * (1 - s)


ACTIVATIONS: dict[str, Activation] = {
    "linear": Activation(
        lambda z: z / 4,
        0.25,
        lambda z: torch.full_like(z, 0.25),
        bound=0.25,
        gamma=0.25,
        lipschitz=0.0,
        c1=0.0,
    ),
    "sigmoid": Activation(
        lambda z: torch.sigmoid(z) - 0.5,
        0.25,
        _sigmoid_slope,
        bound=0.25,
        lipschitz=1 / math.sqrt(108),
        c1=0.5,
    ),
    "relu": Activation(
        lambda z: _half_relu(z) / 4,
        0.125,
        lambda z: (1 + z.sign()) / 8,
        bound=0.25,
        gamma=0.25,
        c1=0.0,
    ),
}
"""Those of lazy networks, scaled as in the generalization paper so that all three have the same
slope 1/4 (ReLU: on one side)."""


def identity() -> Activation:
    return Activation(
        lambda z: z, 1.0, torch.ones_like, bound=1.0, gamma=1.0, lipschitz=0.0, c1=0.0
    )


def relu() -> Activation:
    """max(z, 0), with phi'(0) = 0."""
    return Activation(F.relu, 0.0, lambda z: (z > 0).to(z.dtype), bound=1.0, gamma=1.0, c1=0.0)


def leaky_relu(gamma: float = 0.1) -> Activation:
    """max(z, gamma z), with phi'(0) = gamma."""
    _check_gamma(gamma)
    return Activation(
        lambda z: F.leaky_relu(z, gamma),
        gamma,
        lambda z: torch.where(z > 0, torch.ones_like(z), gamma),
        bound=1.0,
        gamma=gamma,
        c1=0.0,
    )


def smoothed_leaky_relu(gamma: float = 0.1, H: float = 1.0) -> Activation:
    """SLReLU (benign, equation 1): leaky ReLU outside [-1/H, 1/H], less (1 - gamma)/(4H), and
    (1 - gamma) H z^2/4 + (1 + gamma) z/2 inside. phi' has Lipschitz constant (1 - gamma) H/2."""
    _check_gamma(gamma)
    if not (H > 0 and math.isfinite(H)):
        raise AdvlabError("H above 0", H)
    mean, half = (1 + gamma) / 2, (1 - gamma) / 2

    def phi(z: Tensor) -> Tensor:
        # The straight pieces and the parabola in one: u (z - u/2) is Huber's function.
        u = z.clamp(-1 / H, 1 / H)
        return mean * z + half * H * u * (z - u / 2)

    def dphi(z: Tensor) -> Tensor:
        return mean + half * (H * z).clamp(-1, 1)

    return Activation(
        phi, mean, dphi, bound=1.0, gamma=gamma, lipschitz=half * H, c1=half / (2 * H)
    )


def quadratic_relu() -> Activation:
    return Activation(lambda z: F.relu(z).square(), 0.0, lambda z: 2 * F.relu(z), lipschitz=2.0)


def erf() -> Activation:
    slope = 2 / math.sqrt(math.pi)
    # phi'' = -2 z phi' is largest at z = -1/sqrt(2).
    steepest = math.sqrt(2) * slope * math.exp(-0.5)
    return Activation(
        torch.erf,
        slope,
        lambda z: slope * torch.exp(-z.square()),
        bound=slope,
        lipschitz=steepest,
        c1=1.0,
    )


def gelu() -> Activation:
    """z Phi(z), the exact one."""
    density = 1 / math.sqrt(2 * math.pi)

    def dphi(z: Tensor) -> Tensor:
        return torch.special.ndtr(z) + z * density * torch.exp(-z.square() / 2)

    # z phi' - phi = z^2 times the normal density is largest at z = sqrt(2).
    # phi'' = (2 - z^2) times the density: phi' is largest at sqrt(2), steepest at 0.
    bound = float(dphi(torch.tensor(math.sqrt(2), dtype=torch.float64)))
    return Activation(
        F.gelu, 0.5, dphi, bound=bound, lipschitz=2 * density, c1=2 * density / math.e
    )


def gaussian_relu() -> Activation:
    """z Phi(z) + density(z): ReLU averaged over a standard normal shift, with slope Phi."""
    density = 1 / math.sqrt(2 * math.pi)

    def phi(z: Tensor) -> Tensor:
        return z * torch.special.ndtr(z) + density * torch.exp(-z.square() / 2)

    return Activation(phi, 0.5, torch.special.ndtr, bound=1.0, lipschitz=density, c1=density)


def sin() -> Activation:
    return Activation(torch.sin, 1.0, torch.cos, bound=1.0, lipschitz=1.0)


def sin_cos() -> Activation:
    """sin z + cos z: not 0 at 0, and universal on the sphere (convergence, tangent kernels)."""

    def together(z: Tensor) -> tuple[Tensor, Tensor]:
        s, c = z.sin(), z.cos()
        return s + c, c.sub_(s)

    return Activation(
        lambda z: z.sin() + z.cos(),
        1.0,
        lambda z: z.cos() - z.sin(),
        bound=math.sqrt(2),
        lipschitz=math.sqrt(2),
        together=together,
    )


SHAPES: dict[str, Callable[..., Activation]] = {
    "identity": identity,
    "relu": relu,
    "leaky_relu": leaky_relu,
    "smoothed_leaky_relu": smoothed_leaky_relu,
    "quadratic_relu": quadratic_relu,
    "erf": erf,
    "gelu": gelu,
    "gaussian_relu": gaussian_relu,
    "sin": sin,
    "sin_cos": sin_cos,
}
"""Activations as they are usually written, unscaled; some take parameters."""


def resolve(activation: str | Activation) -> Activation:
    """One of SHAPES by name, with its default parameters, or the user's own as it is."""
    if isinstance(activation, Activation):
        return activation
    if activation not in SHAPES:
        raise AdvlabError(f"activation must be one of {', '.join(SHAPES)}", repr(activation))
    return SHAPES[activation]()


def _check_gamma(gamma: float) -> None:
    if not 0 < gamma <= 1:
        raise AdvlabError("gamma above 0 and at most 1", gamma, "use relu for gamma 0")
