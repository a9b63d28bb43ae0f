"""The idx reader against files written here, damaged files, and the published counts of MNIST."""

import gzip
import shutil

import numpy as np
import pytest
import torch

from advlab.data import mnist
from advlab.data.directory import SETS, fetch
from advlab.errors import AdvlabError
from advlab.randomness import generator

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.fixture
def copy(small_mnist, tmp_path):
    shutil.copytree(small_mnist, tmp_path / "data")
    return tmp_path / "data"


def raw(root, name):
    return gzip.decompress((root / "mnist" / f"{name}.gz").read_bytes())


def test_images_and_labels_are_those_of_the_files(small_mnist):
    x, y = mnist.load(directory=small_mnist)
    assert x.shape == (60, 1, 28, 28)
    assert x.dtype == torch.float32
    assert (
        bytes((x * 255).round().to(torch.uint8).flatten().tolist()) == raw(small_mnist, IMAGES)[16:]
    )
    assert y.tolist() == [i % 10 for i in range(60)]
    assert len(mnist.load(directory=small_mnist, split="test").y) == 20


def test_digits_and_n_choose(small_mnist):
    everything = mnist.load(directory=small_mnist)
    x, y = mnist.load((3, 7), directory=small_mnist)
    assert y.tolist() == [3, 7] * 6
    assert torch.equal(x, everything.x[torch.isin(everything.y, torch.tensor([3, 7]))])
    first = mnist.load((3, 7), 5, small_mnist)
    assert torch.equal(first.x, x[:5])


def test_a_generator_draws_without_replacement(small_mnist):
    drawn = mnist.load(n=30, directory=small_mnist, rng=generator("draw"))
    again = mnist.load(n=30, directory=small_mnist, rng=generator("draw"))
    assert torch.equal(drawn.x, again.x)
    assert len(torch.unique(drawn.x.flatten(1), dim=0)) == 30
    everything = mnist.load(directory=small_mnist)
    assert not torch.equal(drawn.x, everything.x[:30])
    place = (drawn.x.flatten(1)[:, None] == everything.x.flatten(1)).all(-1).int().argmax(1)
    assert torch.equal(drawn.y, everything.y[place])


def test_plain_files_and_a_flat_directory_are_read(copy):
    before = mnist.load(directory=copy)
    for file in list((copy / "mnist").iterdir()):
        (copy / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        file.unlink()
    (copy / "mnist").rmdir()
    assert torch.equal(mnist.load(directory=copy).x, before.x)


def test_the_directory_comes_from_the_variable(small_mnist, monkeypatch):
    monkeypatch.setenv("ADVLAB_DATA", str(small_mnist))
    assert len(mnist.load().y) == 60


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        (IMAGES, lambda body: b"\x00\x00\x0d" + body[3:], "starts with 00000d03"),
        (IMAGES, lambda body: b"", "starts with nothing"),
        (IMAGES, lambda body: body[:10], "ends in its header"),
        (IMAGES, lambda body: body[:-1], "47040 bytes after the header of .*; got 47039"),
        (IMAGES, lambda body: body + b"\x00", "got 47041"),
        (IMAGES, lambda body: body[:4] + b"\xff" * 12 + body[16:], "bytes after the header"),
        (IMAGES, lambda body: body[:8] + bytes([0, 0, 0, 14, 0, 0, 0, 56]) + body[16:], "28 x 28"),
        (LABELS, lambda body: b"\x00\x00\x08\x01\x00\x00\x00\x3b" + body[9:], "as many images"),
        (LABELS, lambda body: body[:-1] + b"\x0a", "digits from 0 to 9 as labels; got 10"),
    ],
)
def test_damaged_files_are_named(copy, name, damage, says):
    (copy / "mnist" / f"{name}.gz").write_bytes(gzip.compress(damage(raw(copy, name))))
    with pytest.raises(AdvlabError, match=says):
        mnist.load(directory=copy)


def test_a_damaged_gzip_is_named(copy):
    file = copy / "mnist" / f"{IMAGES}.gz"
    whole = file.read_bytes()
    for part in (whole[:1000], b"not gzip", whole[:500] + bytes(100) + whole[600:]):
        file.write_bytes(part)
        with pytest.raises(AdvlabError, match=r"train-images-idx3-ubyte\.gz"):
            mnist.load(directory=copy)


def test_absent_files_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.delenv("ADVLAB_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(AdvlabError) as caught:
        mnist.load()
    assert str(tmp_path / "advlab" / "data" / "mnist") in str(caught.value)
    assert "advlab data fetch mnist" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{"digits": (0, 10)}, {"digits": ()}, {"n": 0}, {"n": 61}, {"split": "val"}]
)
def test_wrong_requests_are_refused(small_mnist, wrong):
    with pytest.raises((AdvlabError, TypeError)) as caught:
        mnist.load(directory=small_mnist, **wrong)
    # The type checker of the tests sees a wrong split before the reader does.
    assert isinstance(caught.value, AdvlabError) or "split" in wrong


def test_the_real_set_has_the_published_counts(real_data):
    x, y = mnist.load(directory=real_data)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(y).tolist() == counts
    assert (x.min(), x.max()) == (0, 1)
    assert abs(x.mean().item() - 0.1307) < 1e-4
    assert len(mnist.load((0, 1), directory=real_data).y) == 12665
    assert len(mnist.load((0, 1), directory=real_data, split="test").y) == 2115


def test_the_known_checksums_are_those_of_the_real_files(real_data, tmp_path):
    shutil.copytree(real_data / "mnist", tmp_path / "mnist")
    # Nothing is fetched when sizes and checksums agree: this mirror refuses every connection.
    assert fetch("mnist", tmp_path, ["http://127.0.0.1:9"]) == tmp_path / "mnist"
    assert len(SETS["mnist"].files) == 4
