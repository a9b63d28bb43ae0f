"""Sparse reconstruction of images from the features of a layer, by Lasso.

    min over codes y of ||W y - x||^2 + lam ||y||_1

(purification paper, section 8.3; Figures 4 and 12). W y is a sum of features: of atoms as large as
the image, or of filters at every place, the transpose of a convolutional layer. Solved by FISTA
(Beck and Teboulle 2009); each answer comes with its duality gap, which proves how near the least
value it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from ..core import inputs
from ..core.checks import fraction, length
from ..core.errors import AdvlabError
from ..threats.base import per_example
from .dictionaries import ConvolutionalDictionary, Dictionary

FRACTIONS = (0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.06, 0.03, 0.015)
CHECK = 20
"""Steps between two looks at the duality gap, which wait for the device."""


@dataclass(frozen=True)
class Reconstruction:
    """The codes found and how good they are, one row per image."""

    code: Tensor
    image: Tensor
    """W y"""
    error: Float[Tensor, " n"]
    """||W y - x||^2 / ||x||^2"""
    share: Float[Tensor, " n"]
    """The share of entries of y that are not zero, which the paper calls sparsity."""
    gap: Float[Tensor, " n"]
    """The objective is at most this times ||x||^2 above its least value."""


@torch.no_grad()
def sparse_reconstruction(
    dictionary: Dictionary,
    x: Float[Tensor, "n *shape"],
    lam: float | Float[Tensor, " n"],
    *,
    tolerance: float = 1e-4,
    steps: int = 2000,
    start: Tensor | None = None,
) -> Reconstruction:
    """The Lasso of each image by FISTA, down to a duality gap.

    A step is 1/(2L) with L >= ||W||^2 by row: it begins with an estimate by power iteration, and
    a step that would need a larger L raises it and is taken anew. Momentum restarts where it points
    uphill (O'Donoghue and Candes 2015).

    Args:
        dictionary: W, in the type and place of x.
        x: images, one row each; the paper shifts each channel to mean zero (`zero_mean`).
        lam: the weight of ||y||_1, one for all or one per image.
        tolerance: stop when every gap is below this times ||x||^2.
        steps: the most steps that are taken; `gap` says what was reached.
        start: the codes to start from, zero if left out.

    Example:
        from advlab.measure.dictionaries import ConvolutionalDictionary
        from advlab.measure.sparse_reconstruction import sparse_reconstruction, zero_mean
        W = ConvolutionalDictionary.of(model.conv1).normalised()
        found = sparse_reconstruction(W, zero_mean(x), lam=0.4)
        found.error.mean(), found.share.mean(), found.gap.max()
    """
    W, x = _fitted(dictionary, x)
    weight = torch.as_tensor(lam, dtype=x.dtype, device=x.device).expand(len(x))
    if not bool((weight > 0).all()):
        raise AdvlabError("lam must be positive", float(weight.min()))
    solver = _Fista(W, x, weight, start)
    energy = x.flatten(1).square().sum(1)
    limit = length("tolerance", tolerance) * energy
    for step in range(inputs.count("steps", steps)):
        if step % CHECK == 0 and bool((solver.gap() <= limit).all()):
            break
        solver.step()
    scale = torch.where(energy > 0, energy, 1.0)
    error = (solver.image - x).flatten(1).square().sum(1) / scale
    share = (solver.code != 0).flatten(1).to(x.dtype).mean(1)
    return Reconstruction(solver.code, solver.image, error, share, solver.gap() / scale)


def _fitted(dictionary: Dictionary, x: Tensor) -> tuple[Dictionary, Tensor]:
    inputs.instance("a Dictionary", dictionary, Dictionary, "such as DenseDictionary(atoms)")
    if x.ndim < 2 or len(x) == 0 or not bool(torch.isfinite(x).all()):
        raise AdvlabError("finite images, one row each", tuple(x.shape))
    if isinstance(dictionary, ConvolutionalDictionary):
        return dictionary.for_images(x), x
    return dictionary, x


class _Fista:
    """Accelerated proximal gradient descent on all images at once, each with its own momentum."""

    def __init__(self, W: Dictionary, x: Tensor, lam: Tensor, start: Tensor | None):
        self.W, self.x, self.lam = W, x, lam
        self.code = torch.zeros_like(W.analyze(x)) if start is None else start.clone()
        self.point = self.code  # the extrapolated point, z
        self.image = self.point_image = W.synthesize(self.code)  # W y, W z
        self.momentum = torch.ones_like(lam)
        self.curvature = torch.full_like(lam, 1.05 * float(_power(W, x[:1])))

    def step(self) -> None:
        curvature, lam = (per_example(one, self.code) for one in (self.curvature, self.lam))
        half = self.W.analyze(self.point_image - self.x)  # half the gradient at z
        code = _shrunk(self.point - half / curvature, lam / (2 * curvature))
        move, image = code - self.point, self.W.synthesize(code)
        size, stretched = _squares(move), _squares(image - self.point_image)
        # Sufficient decrease is ||W d||^2 <= L ||d||^2, but for the rounding of W d; rows without
        # it wait with a larger L.
        rounding = (16 * torch.finfo(image.dtype).eps) ** 2 * _squares(image)
        fits = stretched <= self.curvature * size + rounding
        ratio = 1.05 * stretched / torch.where(size > 0, size, 1.0)
        self.curvature = torch.where(fits, self.curvature, ratio)
        self._accept(fits, code, image, move)

    def _accept(self, fits: Tensor, code: Tensor, image: Tensor, move: Tensor) -> None:
        """Take the step where it fits, and extrapolate, but not uphill."""
        ahead = code - self.code
        uphill = (move * ahead).flatten(1).sum(1) < 0
        after = (1 + (1 + 4 * self.momentum**2).sqrt()) / 2
        pull = torch.where(uphill, 0.0, (self.momentum - 1) / after)
        point = code + per_example(pull, code) * ahead
        point_image = image + per_example(pull, image) * (image - self.image)
        for name, new in (("code", code), ("image", image), ("point", point),
                          ("point_image", point_image)):  # fmt: skip
            setattr(self, name, torch.where(per_example(fits, new), new, getattr(self, name)))
        self.momentum = torch.where(fits, torch.where(uphill, 1.0, after), self.momentum)

    def gap(self) -> Tensor:
        """Primal less dual value of each image.

        The dual is max <v, x> - ||v||^2/4 over |W'v| <= lam; v = 2 (x - W y), scaled until it is
        allowed, is optimal where y is.
        """
        rest = self.x - self.image
        slope = 2 * self.W.analyze(rest).flatten(1).abs().amax(1)
        scale = torch.where(slope > self.lam, self.lam / slope, 1.0)
        primal = _squares(rest) + self.lam * self.code.flatten(1).abs().sum(1)
        inner = (rest * self.x).flatten(1).sum(1)
        return (primal - (2 * scale * inner - scale**2 * _squares(rest))).clamp(min=0.0)


def _shrunk(values: Tensor, by: Tensor) -> Tensor:
    return values.sign() * (values.abs() - by).clamp(min=0.0)


def _squares(values: Tensor) -> Float[Tensor, " n"]:
    return values.flatten(1).square().sum(1)


def _power(W: Dictionary, x: Tensor, turns: int = 30) -> Tensor:
    """||W||^2, from below: power iteration on W'W, from a start without symmetry."""
    code = W.analyze(x)
    code = torch.linspace(0.5, 1.5, code.numel(), dtype=x.dtype, device=x.device).view_as(code)
    size = code.norm()
    for _ in range(turns):
        code = W.analyze(W.synthesize(code / torch.where(size > 0, size, 1.0)))
        size = code.norm()
    return size.clamp(min=torch.finfo(x.dtype).tiny)


def largest_weight(dictionary: Dictionary, x: Float[Tensor, "n *shape"]) -> Float[Tensor, " n"]:
    """2 max |W'x|, from which on the code of an image is zero.

    Args:
        dictionary: W.
        x: images, one row each.

    Example:
        from advlab.measure.sparse_reconstruction import largest_weight, sparse_reconstruction
        sparse_reconstruction(W, x, lam=0.1 * largest_weight(W, x))
    """
    W, x = _fitted(dictionary, x)
    return 2 * W.analyze(x).flatten(1).abs().amax(1)


def zero_mean(x: Float[Tensor, "n channels *places"]) -> Float[Tensor, "n channels *places"]:
    """Each channel of each image less its mean, as the paper shifts its images.

    Args:
        x: images.

    Example:
        from advlab.measure.sparse_reconstruction import lasso_path, zero_mean
        lasso_path(W, zero_mean(x))
    """
    return x - x.flatten(2).mean(2).reshape(*x.shape[:2], *[1] * (x.ndim - 2))


@dataclass(frozen=True)
class ReconstructionPath:
    """Error against share of nonzeros as the weight of ||y||_1 falls, on the CPU."""

    fractions: tuple[float, ...]
    """Of `largest_weight`, falling."""
    error: Float[Tensor, "weights n"]
    share: Float[Tensor, "weights n"]
    gap: Float[Tensor, "weights n"]

    def error_at(self, share: float) -> Float[Tensor, " n"]:
        """The error of each image at a share of nonzeros, linear between the points of its path.

        Every path begins with error 1 at share 0; past its end the error is not known: NaN.

        Args:
            share: such as 0.05.

        Example:
            from advlab.measure.sparse_reconstruction import lasso_path
            lasso_path(W, x).error_at(0.05).mean()
        """
        fraction("share", share)
        ones = torch.ones_like(self.error[:1])
        shares = torch.cat([0 * ones, self.share]).cummax(0).values
        errors = torch.cat([ones, self.error]).cummin(0).values
        after = (shares < share).sum(0)  # the first point that is not below
        known = after < len(shares)
        after = after.clamp(max=len(shares) - 1)[None]
        (s0, s1), (e0, e1) = (
            (one.gather(0, (after - 1).clamp(min=0))[0], one.gather(0, after)[0])
            for one in (shares, errors)
        )
        part = torch.where(s1 > s0, (share - s0) / torch.where(s1 > s0, s1 - s0, 1.0), 1.0)
        return torch.where(known, e0 + part * (e1 - e0), torch.nan)


def lasso_path(
    dictionary: Dictionary,
    x: Float[Tensor, "n *shape"],
    fractions: Sequence[float] = FRACTIONS,
    *,
    tolerance: float = 1e-3,
    steps: int = 2000,
) -> ReconstructionPath:
    """The error and the share of nonzeros over a path of weights (Figure 12).

    Weights are fractions of each image's own `largest_weight`, so that dictionaries and images of
    different scale are compared alike. Each solution starts the next.

    Args:
        dictionary: W; compare dictionaries with atoms of one length (`normalised`).
        x: images, one row each; see `zero_mean`.
        fractions: in (0, 1), falling.
        tolerance: as in `sparse_reconstruction`.
        steps: the most steps for each weight.

    Example:
        from advlab.measure.dictionaries import ConvolutionalDictionary
        from advlab.measure.sparse_reconstruction import lasso_path, zero_mean
        path = lasso_path(ConvolutionalDictionary.of(model.conv1).normalised(), zero_mean(x))
        path.error_at(0.05).mean()
    """
    falls = all(a > b for a, b in pairwise(fractions))
    if not fractions or not falls or not fractions[0] < 1 or not fractions[-1] > 0:
        raise AdvlabError("falling fractions between 0 and 1", tuple(fractions))
    most, found, start = largest_weight(dictionary, x), [], None
    if not bool((most > 0).all()):
        raise AdvlabError("images that are not orthogonal to every feature", "W'x = 0")
    for part in fractions:
        found.append(
            sparse_reconstruction(
                dictionary, x, part * most, tolerance=tolerance, steps=steps, start=start
            )
        )
        start = found[-1].code
    error, share, gap = (
        torch.stack([getattr(one, name) for one in found]).cpu()
        for name in ("error", "share", "gap")
    )
    return ReconstructionPath(tuple(float(part) for part in fractions), error, share, gap)
