"""Arrays as pictures inside a page, without a picture library."""

import base64
import struct
import zlib

import numpy as np
from jaxtyping import Float, UInt8

CHANNELS = (1, 3)


def is_image(shape: tuple[int, ...]) -> bool:
    """Height and width, with one or three colours before or behind them, and more than a strip."""
    plane = _plane(shape)
    return plane is not None and min(plane) >= 4


def picture(values: Float[np.ndarray, "..."], low: float, high: float) -> str:
    """An image as the address of a PNG: `low` is black, `high` is white."""
    scaled = (_last(values) - low) / max(high - low, 1e-12)
    return address(np.round(255 * scaled.clip(0, 1)).astype(np.uint8))


def address(pixels: UInt8[np.ndarray, "height width colours"]) -> str:
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def png(pixels: UInt8[np.ndarray, "height width colours"]) -> bytes:
    """The pixels as a PNG file (ISO/IEC 15948): grey for one colour, RGB for three."""
    height, width, colours = pixels.shape
    kind = {1: 0, 3: 2}[colours]
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    # Every line begins with the number of its filter, here none.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    check = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)


def _plane(shape: tuple[int, ...]) -> tuple[int, int] | None:
    if len(shape) == 2:
        return shape[0], shape[1]
    if len(shape) == 3 and shape[0] in CHANNELS:
        return shape[1], shape[2]
    if len(shape) == 3 and shape[2] in CHANNELS:
        return shape[0], shape[1]
    return None


def _last(values: np.ndarray) -> np.ndarray:
    """Colours last."""
    if values.ndim == 2:
        return values[:, :, None]
    return np.moveaxis(values, 0, 2) if values.shape[0] in CHANNELS else values
