"""Single neurons on attacked and fresh points: Proposition B.24, Corollary B.31, Lemma B.32."""

from jaxtyping import Bool, Float
from torch import Tensor

from ..data import Clusters
from .snapshot import Networks, Snapshot, stacked
from .steps import secants


def open_pairs(now: Snapshot, net: Networks) -> Bool[Tensor, "R n m"]:
    """A(t): the pairs with <w_s, x_i> > alpha ||w_s||, so that w_s is active on the whole ball."""
    return net.inner(now.data.x) > now.radius * net.weight.norm(dim=2)[:, None]


def kept_pairs(now: Snapshot, eta: float) -> Bool[Tensor, "R n m"]:
    """A(t) and A(t+1): the pairs that are open before and after a step."""
    return open_pairs(now, now.net) & open_pairs(now, now.after(eta))


def secant_floor(now: Snapshot, eta: float) -> Float[Tensor, "R n"]:
    """Proposition B.24: lambda_i(x~_i; W^t) less gamma^2 |A^i(t) and A^i(t+1)|/m, at least 0."""
    gamma = now.net.activation.gamma or 0.0
    own = secants(now, eta, now.x).diagonal(dim1=1, dim2=2)
    return own - gamma**2 * kept_pairs(now, eta).to(own).mean(2)


def neuron_margins(net: Networks, test: Clusters) -> Float[Tensor, "R k"]:
    """Corollary B.31: the least a_s y_c <w_s, x> over the neurons, at each fresh point."""
    test = stacked(test)
    signs = test.y_clean[:, :, None] * net.top[:, None]
    return (signs * net.inner(test.x)).amin(2)


def neuron_sizes(
    net: Networks, test: Clusters, alpha: float, mu_norm: float, d: int, n: int
) -> Float[Tensor, "R k"]:
    """Lemma B.32: the largest |<w_s, x>| over ||mu||^2 + ||mu|| ||xi|| + sqrt(d/n) ||xi|| +
    ||mu|| alpha + ||xi|| alpha at each fresh point; at most c8 eta/sqrt(m) times the sum of G_rob.

    Args:
        net: the networks, in the coordinates of the test points.
        test: fresh points x = y_c mu + xi.
        alpha, mu_norm, d, n: radius, length of the mean, true dimension and number of examples. The
            coordinates of xi that are not there have variance 1 and count with their mean square.
    """
    test = stacked(test)
    k = test.x.shape[-1]
    xi = (test.noise.square().sum(2) + max(d - k, 0)).sqrt()
    unit = mu_norm**2 + (mu_norm + (d / n) ** 0.5 + alpha) * xi + mu_norm * alpha
    return net.inner(test.x).abs().amax(2) / unit
