"""Images of ten classes that need no files: for trying a run out, never for deciding a claim."""

import torch

from ..core.errors import AdvlabError
from ..core.randomness import generator, normal, uniform
from .arrays import Arrays

CLASSES = 10


def stand_in_images(
    n: int, rng: torch.Generator, *, channels: int = 3, side: int = 16, contrast: float = 0.25
) -> Arrays:
    """n images in [0, 1]: a smooth pattern for each of ten classes, and noise on each image.

    The patterns are the same in every call, so that two draws are of the same population.

    Args:
        n: how many.
        rng: which classes, and the noise.
        channels: of the images.
        side: their height and width.
        contrast: how far patterns reach from grey.

    Example:
        from advlab.core.randomness import generator
        from advlab.data.stand_in_images import stand_in_images
        train = stand_in_images(200, generator("train"))
    """
    if min(n, channels, side) < 1:
        raise AdvlabError("n, channels and side of at least 1", f"{n}, {channels}, {side}")
    coarse = torch.empty(CLASSES, channels, 4, 4)
    patterns = torch.nn.functional.interpolate(
        2 * uniform(coarse, generator("stand-in images", channels)) - 1,
        size=(side, side), mode="bilinear", align_corners=False,
    )  # fmt: skip
    y = (CLASSES * uniform(torch.empty(n), rng)).long().clamp(max=CLASSES - 1)
    noise = normal(torch.empty(n, channels, side, side), rng)
    return Arrays((0.5 + contrast * patterns[y] + 0.1 * noise).clamp(0, 1), y)
