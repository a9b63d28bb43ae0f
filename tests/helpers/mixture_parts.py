"""What tests of the mixture's theory share: laws of one coordinate, draws, one setting."""

import numpy as np


def gaussian(t):
    return -(t**2) / 2


def quartic(t):
    return -0.35 * t**2 - 0.4 * t**4


def lopsided(t):
    """Log-concave with its peak at 0 and unequal tails."""
    return np.where(np.asarray(t) > 0, -2.0, -0.3) * np.asarray(t) ** 2


LAWS = {"gaussian": gaussian, "quartic": quartic, "lopsided": lopsided}


def draws(log_density, shape, seed):
    """By rejection from a wide normal: no code in common with the package."""
    rng = np.random.default_rng(seed)
    scale, kept = 1.5, np.empty(0)
    while kept.size < np.prod(shape):
        t = scale * rng.normal(size=2 * int(np.prod(shape)))
        # log p + t^2/(2 scale^2) is at most 0 for the three laws, as their curvature is >= 0.44.
        kept = np.append(
            kept, t[np.log(rng.uniform(size=t.size)) < log_density(t) + (t / scale) ** 2 / 2]
        )
    return kept[: np.prod(shape)].reshape(shape)


PRESET = {
    "n": 20,
    "d": 3000,
    "mu_norm": 10.0,
    "alpha": 1.0,
    "beta": 0.1,
    "omega": 0.005 / np.sqrt(40 * 3000),
    "eta": 0.005,
    "width": 40,
    "delta": 0.05,
}
