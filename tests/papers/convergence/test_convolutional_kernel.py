"""The convolutional tangent kernel: wide networks, a recursion by place, and dense kernels."""

import numpy as np
import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.measure.tangent_kernel import empirical_ntk, tangent_kernels
from advlab.papers.convergence.models import ConvReLU
from advlab.papers.convergence.theory.convolutional_kernel import convolutional_kernel

RNG = np.random.default_rng(0)
IMAGES = RNG.standard_normal((3, 2, 3, 4))


def places(height, width):
    return [(i, j) for i in range(height) for j in range(width)]


def gaussian_means(a, b, c):
    """E[relu(u) relu(v)] and P(u > 0, v > 0) for covariances a, b, c: a sum over angles."""
    turn = 2 * np.pi * (np.arange(20_000) + 0.5) / 20_000
    along = c / np.sqrt(a)
    u = np.sqrt(a) * np.cos(turn)
    v = along * np.cos(turn) + np.sqrt(max(b - along**2, 0)) * np.sin(turn)
    both = 2 * (np.maximum(u, 0) * np.maximum(v, 0)).mean()  # E r^2 = 2
    return both, ((u > 0) & (v > 0)).mean()


class ByPlace:
    """The recursion of the whole kernel for two images, written out place by place.

    Not from shares of layers: the kernel T of the activations themselves, T_h = K_h + 2 P T(z_h).
    """

    def __init__(self, x, y, q, circular):
        self.x, self.y, self.r, self.circular = x, y, q // 2, circular
        self.known = {}

    def near(self, p, o):
        i, j = p[0] + o[0], p[1] + o[1]
        height, width = self.x.shape[1:]
        if self.circular:
            return i % height, j % width
        return (i, j) if 0 <= i < height and 0 <= j < width else None

    def mean(self, value, p, s):
        reach = range(-self.r, self.r + 1)
        pairs = [(self.near(p, (a, b)), self.near(s, (a, b))) for a in reach for b in reach]
        return sum(value(*pair) for pair in pairs if None not in pair) / len(pairs)

    def covariance(self, h, first, second, p, s):
        """Of z_h at place p of one image and s of another."""
        return self.mean(lambda a, b: self.state(h - 1, first, second, a, b)[0], p, s)

    def state(self, h, first, second, p, s):
        """K_h and T_h of activations x_h at places p and s."""
        key = (h, first, second, p, s)
        if key not in self.known:
            self.known[key] = self.work_out(h, first, second, p, s)
        return self.known[key]

    def work_out(self, h, first, second, p, s):
        one, other = getattr(self, first), getattr(self, second)
        if h == 0:
            return one[:, p[0], p[1]] @ other[:, s[0], s[1]] / len(one), 0.0
        both, positive = gaussian_means(
            self.covariance(h, first, first, p, p),
            self.covariance(h, second, second, s, s),
            cov := self.covariance(h, first, second, p, s),
        )
        carried = self.mean(lambda a, b: self.state(h - 1, first, second, a, b)[1], p, s)
        return 2 * both, 2 * positive * (cov + carried)

    def kernel(self, depth, pooling):
        everywhere = places(*self.x.shape[1:])
        pairs = [(p, s) for p in everywhere for s in everywhere if pooling or p == s]
        return np.mean([sum(self.state(depth, "x", "y", p, s)) for p, s in pairs])


@pytest.mark.parametrize("padding", ["zeros", "circular"])
@pytest.mark.parametrize("pooling", [False, True])
@pytest.mark.parametrize("depth", [2, 3])
def test_by_place(depth, pooling, padding):
    setting = {"depth": depth, "pooling": pooling, "padding": padding}
    found = convolutional_kernel(IMAGES[:1], IMAGES[1:2], **setting)
    expected = ByPlace(IMAGES[0], IMAGES[1], 3, padding == "circular").kernel(depth, pooling)
    np.testing.assert_allclose(found.sum(), expected, rtol=1e-3)


@pytest.mark.parametrize("padding", ["zeros", "circular"])
@pytest.mark.parametrize("pooling", [False, True])
def test_it_is_that_of_wide_networks(pooling, padding):
    """The mean over 60 networks of 64 channels, layer by layer, within four standard errors."""
    x, many = torch.from_numpy(IMAGES), 60
    drawn = []
    for seed in range(many):
        rng = generator("convolutional kernel", pooling, padding, seed)
        net = ConvReLU.draw((2, 3, 4), 64, 2, rng, pooling=pooling, padding=padding)
        shares = tangent_kernels(net, x, batch=None)
        names = ("filters.0", "filters.1", "top")
        drawn.append(torch.stack([shares[name] for name in names])[..., 0, 0].numpy())
    expected = convolutional_kernel(IMAGES, depth=2, pooling=pooling, padding=padding)
    error = np.std(drawn, axis=0) / np.sqrt(many)
    scale = expected.sum(0).max()
    assert (np.abs(np.mean(drawn, axis=0) - expected) <= 4 * error + 0.005 * scale).all()
    assert error.max() < 0.03 * scale


def test_one_pixel_is_the_dense_kernel():
    """The dense recursion Theta_h = Theta_{h-1} kappa_0 + kappa_1 for unit vectors, by hand."""
    c = np.array([1.0, 0.6, -0.3])
    x = np.stack([np.ones_like(c), np.zeros_like(c)], 1)
    y = np.stack([c, np.sqrt(1 - c**2)], 1)
    theta, rho = c, c
    for _ in range(3):
        angle = np.arccos(rho)
        rho = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi
        theta = theta * (1 - angle / np.pi) + rho
    # Two channels: K_0 is <x, y>/2, and the kernel is homogeneous in it.
    for q in (1, 3):
        found = convolutional_kernel(
            x[:, :, None, None], y[:, :, None, None], depth=3, filter_size=q
        )
        # A 3 x 3 filter sees one place of nine, in each layer.
        np.testing.assert_allclose(np.diag(found.sum(0)) * 2 * q**6, theta, atol=1e-7)


def test_shifted_images_are_one_to_a_circular_pooled_network():
    moved = np.roll(IMAGES, (1, 2), axis=(2, 3))
    settings = {"depth": 3, "pooling": True, "padding": "circular"}
    here, there = (convolutional_kernel(IMAGES, one, **settings) for one in (IMAGES, moved))
    np.testing.assert_allclose(here, there, rtol=1e-9)
    flat = convolutional_kernel(IMAGES, moved, depth=3, padding="circular")
    assert np.abs(flat - convolutional_kernel(IMAGES, depth=3, padding="circular")).max() > 0.01
    net = ConvReLU.draw((2, 3, 4), 8, 3, generator("shift"), pooling=True, padding="circular")
    x, y = torch.from_numpy(IMAGES), torch.from_numpy(moved)
    torch.testing.assert_close(empirical_ntk(net, x), empirical_ntk(net, x, y))


def test_it_is_positive_semidefinite_and_blank_images_have_none():
    images = np.concatenate([RNG.standard_normal((6, 1, 4, 4)), np.zeros((1, 1, 4, 4))])
    for pooling in (False, True):
        shares = convolutional_kernel(images, depth=3, pooling=pooling)
        assert min(np.linalg.eigvalsh((one + one.T) / 2).min() for one in shares) > -1e-9
        assert np.abs(shares[:, -1]).max() == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"depth": 0}, "depth"),
        ({"filter_size": 2}, "odd"),
        ({"padding": "reflect"}, "padding"),
        ({"x": IMAGES[0]}, "images"),
        ({"y": IMAGES[:, :1]}, "one shape"),
    ],
)
def test_what_it_cannot_take_is_refused(change, words):
    with pytest.raises(AdvlabError, match=words):
        convolutional_kernel(**{"x": IMAGES, "depth": 2, **change})


def test_filters_of_even_size_have_no_middle():
    with pytest.raises(AdvlabError, match="odd"):
        ConvReLU.draw((1, 4, 4), 3, 1, generator("even"), filter_size=2)
