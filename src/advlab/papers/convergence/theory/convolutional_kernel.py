"""The tangent kernel of a plain convolutional ReLU network at infinite width, layer by layer.

The network (`ConvReLU`): x_0 is an image of C_0 channels; for h = 1, ..., H

    z_h = conv(W_h, x_{h-1}) / (q sqrt(C_{h-1})),     x_h = sqrt(2) relu(z_h),

with q x q filters, stride 1, images padded to their size, all weights N(0, 1); then f = <a, x_H>
over sqrt(C_H pixels), or with pooling <a, mean of x_H over pixels> over sqrt(C_H). As the channels
become many, entries of z_h at places p of x and p' of x' have covariances

    S_h(p, p') = 1/q^2 sum_{offsets o} K_{h-1}(p + o, p' + o),   K_0(p, p') = <x_p, x'_p'>/C_0,
    K_h = 2 E[relu(u) relu(v)],   D_h = 2 P(u > 0, v > 0),   (u, v) of the covariances S_h,

a place outside the image giving zero (or, if circular, the place it wraps to). The gradient in W_h
has the kernel S_h at z_h, which each later layer j carries on by the factor D_j and the same mean
over offsets; f sees the mean over p = p', or with pooling over all p and p' (Arora, Du, Hu, Li,
Salakhutdinov and Wang, 2019; Novak et al., 2019). On images of one pixel this is the dense kernel.
"""

import numpy as np

from ....core.checks import Array, ArrayLike, chosen, finite, whole
from ....core.errors import AdvlabError


def convolutional_kernel(
    x: ArrayLike,
    y: ArrayLike | None = None,
    *,
    depth: int,
    filter_size: int = 3,
    pooling: bool = False,
    padding: str = "zeros",
) -> Array:
    """The shares of W_1, ..., W_H and of the top layer a; their sum is the whole kernel.

    Memory and time go with the square of the number of pixels, for each pair of images.

    Args:
        x: images (n, channels, height, width).
        y: other images of the same shape, by default x.
        depth: H, the number of convolutions.
        filter_size: q, odd.
        pooling: whether x_H is averaged over the image before the top layer.
        padding: what lies outside of an image: "zeros", or "circular", where it goes on at the
            other side.

    Returns:
        An array of shape (H + 1, n, images of y).

    Example:
        from advlab.papers.convergence.theory.convolutional_kernel import convolutional_kernel
        convolutional_kernel(images, depth=3, pooling=True).sum(0)  # a Gram matrix
    """
    left = _images("x", x)
    right = left if y is None else _images("y", y)
    if left.shape[1:] != right.shape[1:]:
        raise AdvlabError("images of one shape", f"{left.shape[1:]} and {right.shape[1:]}")
    H, q = whole("depth", depth), whole("filter_size", filter_size)
    if q % 2 == 0:
        raise AdvlabError("an odd filter_size, which has a middle", q)
    chosen("padding", padding, ("zeros", "circular"))

    def spread(kernel: Array) -> Array:
        return _mean_over_offsets(kernel, q, padding)

    own = [np.einsum("ncij,nckl->nijkl", one, one)[:, None] / one.shape[1] for one in (left, right)]
    both = np.einsum("ncij,mckl->nmijkl", left, right) / left.shape[1]
    shares: list[Array] = []
    for _ in range(H):
        both, own = spread(both), [spread(one) for one in own]
        # Shares of the earlier weights arrive at z_h; that of W_h begins there.
        shares = [*(spread(share) for share in shares), both]
        first, second = (np.einsum("nmijij->nmij", one)[:, 0] for one in own)
        lengths = np.sqrt(first[:, None, :, :, None, None] * second[None, :, None, None])
        both, slopes = _relu_means(both, lengths)
        own = [_relu_means(one, _lengths(one))[0] for one in own]
        shares = [share * slopes for share in shares]
    axes = "nmijkl->nm" if pooling else "nmijij->nm"
    pixels = left.shape[2] * left.shape[3]
    return np.stack([np.einsum(axes, share) for share in (*shares, both)]) / (
        pixels**2 if pooling else pixels
    )


def _lengths(own: Array) -> Array:
    """sqrt(K(p, p) K(p', p')) of images with themselves."""
    each = np.einsum("nmijij->nmij", own)
    return np.sqrt(each[..., None, None] * each[:, :, None, None])


def _relu_means(both: Array, lengths: Array) -> tuple[Array, Array]:
    """2 E[relu(u) relu(v)] and 2 P(u > 0, v > 0); zeros where a variance is zero."""
    c = np.clip(np.divide(both, lengths, out=np.zeros_like(both), where=lengths > 0), -1, 1)
    angle = np.arccos(c)
    means = lengths * (np.sin(angle) + (np.pi - angle) * c) / np.pi
    return means, np.where(lengths > 0, 1 - angle / np.pi, 0.0)


def _mean_over_offsets(kernel: Array, q: int, padding: str) -> Array:
    """1/q^2 sum over offsets o of kernel(p + o, p' + o)."""
    r, (height, width) = q // 2, kernel.shape[-2:]
    edges = [(0, 0)] * 2 + [(r, r)] * 4
    padded = np.pad(kernel, edges, mode="constant" if padding == "zeros" else "wrap")
    total = np.zeros_like(kernel)
    for i in range(q):
        for j in range(q):
            rows, columns = slice(i, i + height), slice(j, j + width)
            total += padded[:, :, rows, columns, rows, columns]
    return total / q**2


def _images(name: str, value: ArrayLike) -> Array:
    array = finite(name, value)
    if array.ndim != 4 or not array.size:
        raise AdvlabError(f"{name} must be images (n, channels, height, width)", array.shape)
    return array
