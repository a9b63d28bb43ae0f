"""The tangent kernel of the deep ReLU network of section 4, layer by layer, at infinite width.

With entries N(0, 2/m) of A and W_h and N(0, 1) of a, the inner products of x_{h-1} and of the
gradients b_h in the pre-activations have limits that follow one another: for unit vectors of cosine
c let rho_0 = c and rho_h = (sin t + (pi - t) cos t)/pi, cos t = rho_{h-1}. Then <x_h, x_h'> goes
to 2 rho_h, <b_h, b_h'>/m to 1/2 prod_{j >= h} (1 - t_{j-1}/pi), and

    <grad_h f(x), grad_h f(x')>/m  ->  rho_{h-1} prod_{j = h}^{H} (1 - arccos(rho_{j-1})/pi).

So each layer's gradient has length sqrt(m) in the limit, whatever the depth (Lemma A.5 has
O(sqrt(m H))), and with one hidden layer this is twice the kernel of ReLU (Definition 5.1).
"""

import numpy as np

from ....core.checks import Array, ArrayLike, cosine, whole


def deep_kernel(c: ArrayLike, depth: int) -> Array:
    """K_h(c), h = 1, ..., H, over m: one row per hidden layer; their sum is the whole kernel.

    Args:
        c: <x, x'> of unit vectors.
        depth: H, the number of hidden layers.

    Returns:
        An array of shape (H, *shape of c).

    Example:
        from advlab.papers.convergence.theory.deep_kernel import deep_kernel
        deep_kernel([1.0, 0.5], depth=2).sum(0)  # 2 at c = 1: each layer gives 1
    """
    rho, H = cosine(c), whole("depth", depth)
    cosines: list[Array] = []
    shared: list[Array] = []
    for _ in range(H):
        angle = np.arccos(rho)
        cosines.append(rho)
        shared.append(1 - angle / np.pi)
        rho = np.clip((np.sin(angle) + (np.pi - angle) * rho) / np.pi, -1, 1)
    # Products over the layers from h to H.
    behind = np.cumprod(np.stack(shared)[::-1], axis=0, dtype=float)[::-1]
    return np.stack(cosines) * behind
