"""Folders of images, one folder per class, read one image at a time."""

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.data import Dataset

from ..core import inputs
from ..core.errors import AdvlabError
from ..core.inputs import Given

Size = tuple[int, int]
SUFFIXES = (".png", ".jpg", ".jpeg")


class ImageFolder(Dataset):
    """The images of a folder with one folder per class: class/name.png or .jpeg, at any depth.

    Classes are numbered in the order of their folders' names. Images have shape (channels, height,
    width) with values in [0, 1]: one channel for grey images, three for all others. They are read
    when asked for, so a folder takes no memory.

    Args:
        path: the folder.
        size: (height, width) to which images are resized; without it all must have one size.

    Attributes:
        classes: the names of the class folders, in order.
        files: the images, class by class and by name.
        targets: the class of each image.

    Example:
        import advlab
        from advlab.data import ImageFolder
        advlab.evaluate(model, ImageFolder("photos/test", size=(32, 32)), ball=ball)
    """

    def __init__(self, path: Given[str | PathLike[str]], size: Given[Size | None] = None):
        _pillow()
        self.path = inputs.path("a folder of images", path)
        self.size = None if size is None else _size(size)
        if not self.path.is_dir():
            raise AdvlabError("a folder of images", f"{self.path}, which is no folder")
        folders = {one.name: _files(one) for one in sorted(self.path.iterdir()) if one.is_dir()}
        self.classes = tuple(name for name, files in folders.items() if files)
        self.files = [file for files in folders.values() for file in files]
        numbers = [n for n, name in enumerate(self.classes) for _ in folders[name]]
        self.targets = torch.tensor(numbers, dtype=torch.int64)
        if not self.files:
            raise AdvlabError(
                "a folder of images with one folder per class",
                f"{self.path}, where no folder has any",
                f"put images ({', '.join(SUFFIXES)}) into {self.path / 'some_class'}",
            )
        self._shape: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, row: int) -> tuple[Float[Tensor, "channels height width"], int]:
        x = read_image(self.files[row], self.size)
        if self._shape is None:
            self._shape = tuple(x.shape)
        if x.shape != self._shape:
            raise AdvlabError(
                f"images of one shape, {self._shape}",
                f"{self.files[row]} of shape {tuple(x.shape)}",
                "give ImageFolder a size, and convert grey and colour images to one kind",
            )
        return x, int(self.targets[row])


def read_image(
    path: Path, size: tuple[int, int] | None = None
) -> Float[Tensor, "channels height width"]:
    """One image in [0, 1].

    Args:
        path: a PNG or JPEG file.
        size: (height, width) to resize it to.
    """
    image = _pillow()
    try:
        with image.open(path, formats=("PNG", "JPEG")) as opened:
            return pixels(opened, size)
    except (OSError, ValueError, SyntaxError, image.DecompressionBombError) as error:
        raise AdvlabError(f"{path} as a PNG or JPEG image", inputs.whole_line(error)) from None


def pixels(
    image: Any, size: tuple[int, int] | None = None
) -> Float[Tensor, "channels height width"]:
    """The values in [0, 1] of an image of Pillow's: one channel if it is grey, else three.

    Args:
        image: the image.
        size: (height, width) to resize it to.
    """
    plain = image.convert("L" if image.mode in ("1", "L", "I;16") else "RGB")
    if size is not None and plain.size != size[::-1]:
        plain = plain.resize(size[::-1])
    values = torch.from_numpy(np.array(plain, dtype=np.uint8)).to(torch.float32) / 255
    return values[None] if values.ndim == 2 else values.permute(2, 0, 1).contiguous()


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES)


def _size(size: Any) -> tuple[int, int]:
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise AdvlabError("size as (height, width)", f"{size!r:.60}")
    return inputs.count("height", size[0]), inputs.count("width", size[1])


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise AdvlabError(
            "Pillow, to read images", "it is not installed", 'pip install "advlab[images]"'
        ) from None
