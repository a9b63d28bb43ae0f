"""Data for tests: a real data directory where there is one, and small files of the same format."""

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest

SIZES = {"train": 60, "t10k": 20}


@pytest.fixture(scope="session")
def real_data() -> Path:
    """A directory with the real data sets: $ADVLAB_DATA, or shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    for path in (Path(os.environ.get("ADVLAB_DATA") or beside), beside):
        if (path / "mnist" / "train-images-idx3-ubyte.gz").is_file():
            return path
    pytest.skip("no directory with real data")


@pytest.fixture(scope="session")
def small_mnist(tmp_path_factory) -> Path:
    """A data directory with 60 + 20 images of noise in the format of MNIST, labels in turn."""
    root = tmp_path_factory.mktemp("data")
    (root / "mnist").mkdir()
    rng = np.random.default_rng(0)
    for prefix, n in SIZES.items():
        images = rng.integers(0, 256, size=(n, 28, 28), dtype=np.uint8)
        labels = np.arange(n, dtype=np.uint8) % 10
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
            with gzip.open(root / "mnist" / f"{prefix}-{kind}-ubyte.gz", "wb") as file:
                file.write(header + array.tobytes())
    return root
