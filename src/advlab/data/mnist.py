"""MNIST from its four original idx files, gzipped or plain, or an .npz; nothing is unpickled.

Also pairs of its digits as vectors of any dimension and length.
"""

import gzip
import math
import struct
import zlib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from ..core.errors import AdvlabError
from .arrays import Arrays, from_bytes, read_npz
from .directory import Split, absent, find, reading_set

FILES: dict[Split, tuple[str, str]] = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
NAMES = tuple(str(digit) for digit in range(10))
BYTES = 8
"""The code of unsigned bytes in the third byte of an idx file."""
MOST = 2**30
"""No idx file of MNIST's kind is larger."""


def load(
    digits: Sequence[int] | None = None,
    n: int | None = None,
    directory: str | PathLike[str] | None = None,
    split: Split = "train",
    rng: torch.Generator | None = None,
) -> Arrays:
    """Images as float32 of shape (n, 1, 28, 28) in [0, 1], and the digits they show as int64.

    Only images of `digits` are kept. Of these come the first n in the order of the files, or n
    different ones at random where a generator is given.
    """
    if split not in FILES:
        raise AdvlabError("split as train or test", repr(split))
    files = located(split, directory)
    with reading_set("mnist", split, directory, files):
        if files[0].suffix == ".npz":
            x, y = read_npz(files[0], ((f"x_{split}", f"y_{split}"),))
        else:
            x, y = read_idx(files[0], 3), read_idx(files[1], 1)
    bytes_ = x.dtype == np.uint8 and y.dtype.kind in "iu" and y.ndim == 1
    if not bytes_ or x.shape[1:] != (28, 28) or len(x) != len(y):
        raise AdvlabError(
            "as many images of 28 x 28 bytes as labels",
            f"shapes {x.shape} in {files[0]} and {y.shape} in {files[-1]}",
        )
    if y.size and not 0 <= y.min() <= y.max() <= 9:
        odd = y.max() if y.max() > 9 else y.min()
        raise AdvlabError("digits from 0 to 9 as labels", f"{odd} in {files[-1]}")
    if digits is not None:
        unknown = sorted(set(digits) - set(range(10)))
        if unknown or not digits:
            raise AdvlabError("one or more digits from 0 to 9", tuple(digits))
        keep = np.isin(y, list(digits))
        x, y = x[keep], y[keep]
    return from_bytes(x[:, None], y, n, rng, NAMES)


def located(split: Split, directory: str | PathLike[str] | None = None) -> list[Path]:
    """The files of images and of labels that `load` reads, or else mnist.npz, as Keras has it.

    Args:
        split: "train" or "test".
        directory: where to look, None for the data directory of the user.
    """
    packed = find("mnist", "mnist.npz", directory)
    if packed is not None and not any(_idx(name, directory) for name in FILES[split]):
        return [packed]
    return [_file(name, directory) for name in FILES[split]]


def pair(
    digits: tuple[int, int] = (0, 1),
    *,
    side: int = 28,
    norm: float,
    n: int | None = None,
    directory: str | PathLike[str] | None = None,
    split: Split = "train",
    rng: torch.Generator | None = None,
) -> Arrays:
    """Two digits as vectors of side^2 pixels and l2 length `norm`, with labels -1.0 and +1.0.

    The benign overfitting paper's MNIST: dimension and signal strength are chosen, the images are
    real. The first of `digits` is -1.
    """
    if len(set(digits)) != 2:
        raise AdvlabError("two different digits", tuple(digits))
    images = load(digits, n, directory, split, rng)
    x = rescale(resample(images.x, side).flatten(1), norm)
    return Arrays(x, torch.where(images.y == digits[1], 1.0, -1.0).to(x.dtype))


def resample(
    images: Float[Tensor, "n c height width"], side: int
) -> Float[Tensor, "n c {side} {side}"]:
    """Each pixel of a side x side grid over an image is the image's mean over its area."""
    if side < 1:
        raise AdvlabError("a side of at least one pixel", side)
    rows, columns = (_area(old, side).to(images) for old in images.shape[-2:])
    return rows @ images @ columns.T


def rescale(x: Float[Tensor, "n d"], norm: float) -> Float[Tensor, "n d"]:
    """Every row times what gives it the l2 length `norm`."""
    if not 0 < norm < math.inf:
        raise AdvlabError("a norm above 0", norm)
    lengths = torch.linalg.vector_norm(x.double(), dim=1, keepdim=True)
    if bool((lengths == 0).any()):
        raise AdvlabError("vectors that are not 0", f"row {int(lengths.argmin())} of zeros")
    return (x.double() * (norm / lengths)).to(x.dtype)


def _area(old: int, new: int) -> Float[Tensor, "{new} {old}"]:
    """The share that each of `old` pixels has in each of `new` of the same total length."""
    # In units of 1/(old new) of that length all edges are whole numbers, and overlaps exact.
    mine, theirs = old * torch.arange(new)[:, None], new * torch.arange(old)
    overlap = torch.minimum(mine + old, theirs + new) - torch.maximum(mine, theirs)
    return overlap.clamp(min=0).double() / old


def read_idx(path: Path, ndim: int) -> UInt8[np.ndarray, "..."]:
    """The array of an idx file of unsigned bytes with this many axes."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            header = stream.read(4 * (1 + ndim))
            if header[:4] != bytes([0, 0, BYTES, ndim]):
                raise AdvlabError(
                    f"an idx file of bytes with {ndim} axes (it starts with 0000080{ndim})",
                    f"{path} which starts with {header[:4].hex() or 'nothing'}",
                )
            if len(header) < 4 * (1 + ndim):
                raise AdvlabError("a whole idx file", f"{path}, which ends in its header")
            shape = struct.unpack(f">{ndim}I", header[4:])
            # One byte more than promised is enough to know that the file is another one.
            body = stream.read(min(math.prod(shape), MOST) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise AdvlabError(
            "a whole gzip or plain idx file",
            f"{path} ({' '.join(str(error).split())})",
            "delete it and run `advlab data fetch mnist`",
        ) from None
    if len(body) != math.prod(shape):
        raise AdvlabError(
            f"{math.prod(shape)} bytes after the header of {path}",
            len(body),
            "delete it and run `advlab data fetch mnist`",
        )
    return np.frombuffer(bytearray(body), dtype=np.uint8).reshape(shape)


def _idx(name: str, directory: str | PathLike[str] | None) -> Path | None:
    return find("mnist", f"{name}.gz", directory) or find("mnist", name, directory)


def _file(name: str, directory: str | PathLike[str] | None) -> Path:
    found = _idx(name, directory)
    if found is None:
        raise absent("mnist", f"{name}.gz", directory)
    return found
