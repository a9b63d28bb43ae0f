"""What the theorems ask of the settings of a run, as far as a run makes sense without it."""

from .....core.errors import AdvlabError


def check_range(n: int, d: int, mu_norm: float, alpha: float, width: int) -> None:
    """Refuse settings that no constant of Assumption 1 allows.

    Args:
        n: training examples.
        d: the dimension, at least n.
        mu_norm: the length of the mean.
        alpha: the radius of the attack, at most that length.
        width: neurons, an even number for the symmetric start.
    """
    if alpha > mu_norm:
        raise AdvlabError(f"alpha <= ||mu|| = {mu_norm:g} (Assumption 1)", alpha)
    if d < n:
        raise AdvlabError(f"d of at least n = {n} (Assumption 1 wants far more)", d)
    if width % 2:
        raise AdvlabError("an even width, for a symmetric start", width)
