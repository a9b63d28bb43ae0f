"""Dictionaries: the features of a layer as a linear map from codes to images."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..core.errors import AdvlabError
from ..threats.base import per_example


class Dictionary(ABC):
    """W as a linear map from codes to images, with its transpose."""

    @abstractmethod
    def synthesize(self, code: Tensor) -> Tensor:
        """W y"""

    @abstractmethod
    def analyze(self, image: Tensor) -> Tensor:
        """W'x"""

    @abstractmethod
    def normalised(self) -> "Dictionary":
        """With atoms of length one, so that no feature is cheaper than another; zero stays zero."""


@dataclass(frozen=True)
class DenseDictionary(Dictionary):
    """Atoms as large as the images: W y = sum_k y_k atom_k.

    Args:
        atoms: one per row.

    Example:
        from advlab.measure.dictionaries import DenseDictionary
        DenseDictionary(model.fc1.weight.detach().view(-1, 1, 28, 28))
    """

    atoms: Float[Tensor, "m *shape"]

    def synthesize(self, code: Float[Tensor, "n m"]) -> Float[Tensor, "n *shape"]:
        return torch.tensordot(code, self.atoms, 1)

    def analyze(self, image: Float[Tensor, "n *shape"]) -> Float[Tensor, "n m"]:
        return image.flatten(1) @ self.atoms.flatten(1).mT

    def normalised(self) -> "DenseDictionary":
        return replace(self, atoms=_unit(self.atoms))


@dataclass(frozen=True)
class ConvolutionalDictionary(Dictionary):
    """Filters at every place: W is the transpose of a convolution.

    Args:
        filters: one per channel of the code.
        stride: of the convolution.
        padding: of the convolution.

    Example:
        from advlab.measure.dictionaries import ConvolutionalDictionary
        ConvolutionalDictionary.of(model.conv1)
    """

    filters: Float[Tensor, "m channels height width"]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    size: tuple[int, int] | None = None
    """Height and width of the images, which the codes alone do not tell; set by the first image."""

    @classmethod
    def of(cls, layer: nn.Conv2d) -> "ConvolutionalDictionary":
        """The features of a convolutional layer, without its bias."""
        plain = isinstance(layer, nn.Conv2d) and layer.groups == 1 and layer.dilation == (1, 1)
        if not plain or isinstance(layer.padding, str) or layer.padding_mode != "zeros":
            raise AdvlabError(
                "an nn.Conv2d with padding in numbers, without groups or dilation", f"{layer!r:.90}"
            )
        stride, padding = tuple(layer.stride), tuple(layer.padding)
        return cls(layer.weight.detach(), stride, padding)  # type: ignore[arg-type]

    def for_images(self, image: Tensor) -> "ConvolutionalDictionary":
        """For images of one size."""
        return replace(self, size=(image.shape[-2], image.shape[-1]))

    def synthesize(self, code: Float[Tensor, "n m h w"]) -> Tensor:
        if self.size is None:
            raise AdvlabError("a dictionary that knows the size of images", advice="for_images(x)")
        kernel = self.filters.shape[2:]
        # Pixels at the edge that no filter reaches when strides do not fit: they stay zero.
        more = [
            (side + 2 * pad - k) % stride
            for side, pad, k, stride in zip(
                self.size, self.padding, kernel, self.stride, strict=True
            )
        ]
        return F.conv_transpose2d(code, self.filters, None, self.stride, self.padding, tuple(more))

    def analyze(self, image: Float[Tensor, "n channels height width"]) -> Tensor:
        return F.conv2d(image, self.filters, None, self.stride, self.padding)

    def normalised(self) -> "ConvolutionalDictionary":
        return replace(self, filters=_unit(self.filters))


def _unit(atoms: Tensor) -> Tensor:
    size = atoms.flatten(1).norm(dim=1)
    return torch.where(per_example(size, atoms) > 0, atoms / per_example(size, atoms), 0.0)
