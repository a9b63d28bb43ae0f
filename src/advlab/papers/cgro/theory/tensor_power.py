"""Tensor-power recursions: when z+ = z + m z^2 and its relatives arrive (Lemmas A.1 to A.3).

Sharp forms follow from 1/z - 1/z+ = (z+ - z)/(z z+): a step with z+ - z >= m z^2 has
1 <= (1/m)(1/z - 1/z+) + (1 - z/z+), and 1 - z/z+ <= log(z+/z); both sums telescope.
"""

import numpy as np

from ....core.checks import ArrayLike, Numbers, chosen, finite, nonnegative, positive
from ....core.errors import AdvlabError

FORMS = ("paper", "sharp")


def growth_time(
    start: ArrayLike,
    target: ArrayLike,
    least: ArrayLike,
    most: ArrayLike | None = None,
    form: str = "sharp",
) -> Numbers:
    """Lemma A.1: z + m z^2 <= z+ <= z + M z^2 is at the target v from this time on.

    Args:
        start: z0, positive.
        target: v, at least z0.
        least: m, the lower rate.
        most: M, the upper rate; only the paper's form needs it.
        form: "paper", 3/(m z0) + (8M/m) ceil(log2(v/z0)), or "sharp",
            1 + 1/(m z0) - 1/(m v) + log(v/z0).

    Example:
        from advlab.papers.cgro.theory import growth_time
        growth_time(0.01, 1.0, 0.1)  # 995.6 steps; the paper's form with M = m says 3056
    """
    z, v, m = _ladder(start, target), positive("target", target), positive("least", least)
    if chosen("form", form, FORMS) == "sharp":
        return 1 + (1 / z - 1 / v) / m + np.log(v / z)
    if most is None:
        raise AdvlabError("the paper's time needs the upper rate M", "no `most`")
    M = positive("most", most)
    if (m > M).any():
        raise AdvlabError("rates with least <= most", "least above most")
    return 3 / (m * z) + 8 * M / m * np.ceil(np.log2(v / z))


def earliest_time(start: ArrayLike, target: ArrayLike, most: ArrayLike) -> Numbers:
    """(1/z0 - 1/v)/M: a sequence with z+ <= z + M z^2 is below v before this time.

    Args:
        start: z0, positive.
        target: v, at least z0.
        most: M, the upper rate.
    """
    z, v = _ladder(start, target), positive("target", target)
    return (1 / z - 1 / v) / positive("most", most)


def noisy_growth_time(
    start: ArrayLike,
    target: ArrayLike,
    rate: ArrayLike,
    noise: ArrayLike,
    form: str = "sharp",
) -> Numbers:
    """Lemma A.2: z_t = z0 + A sum_{s<t} z_s^2 +- C has been at the target v by this time.

    Args:
        start: z0, positive.
        target: v, at least z0.
        rate: A.
        noise: C, at most z0/2 for the paper's form and below z0 for the sharp one.
        form: "paper", 8 ceil(log2(v/z0)) + 21/(z0 A), or "sharp": the sum without its noise grows
            at least like Lemma A.1 from z0 - C, so 1 + 1/(A (z0 - C)) - 1/(A v) + log(v/(z0 - C)).
    """
    z, v, A = _ladder(start, target), positive("target", target), positive("rate", rate)
    C = nonnegative("noise", noise)
    if chosen("form", form, FORMS) == "sharp":
        if (z <= C).any():
            raise AdvlabError("noise below the start z0", "noise of at least z0")
        return growth_time(z - C, v, A)
    if (z / 2 < C).any():
        raise AdvlabError("noise of at most z0/2 (Lemma A.2)", "a larger one")
    return 8 * np.ceil(np.log2(v / z)) + 21 / (z * A)


def decay_bound(
    steps: ArrayLike, rate: ArrayLike, start: ArrayLike | None = None, form: str = "sharp"
) -> Numbers:
    """Lemma A.3: 0 <= z+ <= z - A z^2 is at most this, t - T steps after it was z_T.

    Args:
        steps: t - T.
        rate: A.
        start: z_T, for the sharp form.
        form: "paper", 1/(A (t - T)), or "sharp", 1/(A (t - T) + 1/z_T).
    """
    t, A = nonnegative("steps", steps), positive("rate", rate)
    if chosen("form", form, FORMS) == "paper":
        if (t == 0).any():
            raise AdvlabError("at least one step (Lemma A.3)", 0)
        return 1 / (A * t)
    if start is None:
        raise AdvlabError("the sharp bound needs the start z_T", "no `start`")
    return 1 / (A * t + 1 / positive("start", start))


def _ladder(start: ArrayLike, target: ArrayLike) -> np.ndarray:
    z = positive("start", start)
    if (finite("target", target) < z).any():
        raise AdvlabError("a target of at least the start", "a smaller one")
    return z
