"""The CIFAR-10 readers against records written here, and against the real .npz files."""

import hashlib
import os

import numpy as np
import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.data import cifar10
from advlab.data.published import UNPACKED


def write_batches(folder, records=4):
    """Binary files whose pixel (c, i, j) of image k in batch b is known by formula."""
    folder.mkdir(parents=True)
    for b, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        body = bytearray()
        for k in range(records):
            body.append((b + k) % 10)
            body.extend(
                (50 * c + 2 * i + j + b + k) % 256
                for c in range(3)
                for i in range(32)
                for j in range(32)
            )
        (folder / f"{name}.bin").write_bytes(body)


@pytest.mark.parametrize("folder", ["cifar10", "cifar10/cifar-10-batches-bin", "."])
def test_the_binary_version_is_read_in_order(tmp_path, folder):
    write_batches(tmp_path / "root" / folder)
    x, y = cifar10.load(directory=tmp_path / "root")
    assert x.shape == (20, 3, 32, 32)
    assert y.tolist() == [b + k for b in range(5) for k in range(4)]
    # Image 9 is the second of the third batch.
    assert round(x[9, 2, 5, 7].item() * 255) == 50 * 2 + 2 * 5 + 7 + 2 + 1
    test = cifar10.load(directory=tmp_path / "root", split="test", n=3)
    assert test.y.tolist() == [5, 6, 7]


def test_npz_and_binary_give_the_same(tmp_path):
    write_batches(tmp_path / "a" / "cifar10")
    x, y = cifar10.load(directory=tmp_path / "a")
    (tmp_path / "b" / "cifar10").mkdir(parents=True)
    file = tmp_path / "b" / "cifar10" / "cifar10-train-20.npz"
    np.savez(file, images=(x * 255).round().to(torch.uint8).numpy(), labels=y.numpy())
    again = cifar10.load(directory=tmp_path / "b")
    assert torch.equal(again.x, x)
    assert torch.equal(again.y, y)
    drawn = cifar10.load(6, tmp_path / "b", rng=generator("draw"))
    assert torch.equal(drawn.x, cifar10.load(6, tmp_path / "a", rng=generator("draw")).x)
    np.savez(file.with_name("cifar10-train-2.npz"), images=x.numpy(), labels=y.numpy())
    with pytest.raises(AdvlabError, match="keep one of them"):
        cifar10.load(directory=tmp_path / "b")


def test_damage_is_named(tmp_path):
    with pytest.raises(AdvlabError, match="advlab data fetch cifar10"):
        cifar10.load(directory=tmp_path)
    folder = tmp_path / "cifar10"
    write_batches(folder)
    third = folder / "data_batch_3.bin"
    third.write_bytes(third.read_bytes()[:-1])
    with pytest.raises(AdvlabError, match=r"data_batch_3\.bin of 12291 bytes"):
        cifar10.load(directory=tmp_path)
    third.unlink()
    with pytest.raises(AdvlabError, match=r"without data_batch_3\.bin"):
        cifar10.load(directory=tmp_path)
    (folder / "test_batch.bin").write_bytes(b"\x0a" + bytes(3072))
    with pytest.raises(AdvlabError, match="labels from 10 to 10"):
        cifar10.load(directory=tmp_path, split="test")


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (np.zeros((2, 32, 32, 3), np.uint8), np.zeros(2, np.int64)),
        (np.zeros((2, 3, 32, 32), np.float32), np.zeros(2, np.int64)),
        (np.zeros((2, 3, 32, 32), np.uint8), np.zeros(3, np.int64)),
        (np.zeros((2, 3, 32, 32), np.uint8), np.zeros(2)),
    ],
)
def test_a_wrong_npz_is_named(tmp_path, images, labels):
    np.savez(tmp_path / "cifar10-test.npz", images=images, labels=labels)
    with pytest.raises(AdvlabError, match="images as uint8 of shape"):
        cifar10.load(directory=tmp_path, split="test")


def test_the_real_images_have_the_known_mean(real_data):
    if not (real_data / "cifar10").is_dir():
        pytest.skip("no real CIFAR-10")
    x, y = cifar10.load(2000, real_data, split="test")
    # Published means of the training set: 0.4914, 0.4822, 0.4465.
    np.testing.assert_allclose(x.mean((0, 2, 3)), [0.4914, 0.4822, 0.4465], atol=0.02)
    assert y[:5].tolist() == [3, 8, 8, 0, 6]


def test_zeros_of_the_published_size_are_refused(tmp_path):
    for name in ("test_batch.bin", *(f"data_batch_{i}.bin" for i in range(1, 6))):
        (tmp_path / name).write_bytes(b"")
        os.truncate(tmp_path / name, 30_730_000)
    with pytest.raises(AdvlabError, match=r"data_batch_1\.bin as it was published"):
        cifar10.load(directory=tmp_path)
    with pytest.raises(AdvlabError, match=r"test_batch\.bin as it was published"):
        cifar10.load(directory=tmp_path, split="test")


def test_the_known_checksum_is_that_of_the_real_first_batch(real_data):
    file = real_data / "cifar10" / "cifar10-train-10000.npz"
    if not file.is_file():
        pytest.skip("no CIFAR-10")
    with np.load(file) as arrays:
        labels, pixels = arrays["labels"].astype(np.uint8)[:, None], arrays["images"]
    body = np.concatenate([labels, pixels.reshape(len(labels), -1)], 1).tobytes()
    assert (len(body), hashlib.sha256(body).hexdigest()) == UNPACKED["data_batch_1.bin"]
