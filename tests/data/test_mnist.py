"""The idx reader against files written here, damaged files, and the published counts of MNIST."""

import gzip
import shutil
import struct

import numpy as np
import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.data import mnist
from advlab.data.download import fetch
from advlab.data.published import SETS

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


@pytest.mark.parametrize("side", [1, 5, 7, 10, 14, 17, 20, 24, 28, 32, 56])
def test_resampling_is_the_mean_over_areas(side):
    image = torch.rand(3, 1, 28, 28, generator=generator("image"), dtype=torch.float64)
    small = mnist.resample(image, side)
    assert small.shape == (3, 1, side, side)
    torch.testing.assert_close(small.mean((1, 2, 3)), image.mean((1, 2, 3)), rtol=1e-13, atol=0)
    # Each old pixel cut in side x side, averaged in blocks of 28 x 28: the same by counting.
    fine = image.repeat_interleave(side, 2).repeat_interleave(side, 3)
    counted = torch.nn.functional.avg_pool2d(fine, 28)
    torch.testing.assert_close(small, counted, rtol=1e-12, atol=0)
    blank = torch.full_like(image, 0.3)
    torch.testing.assert_close(mnist.resample(blank, side), torch.full_like(small, 0.3))


def test_side_28_is_the_identity_and_bad_sides_are_refused(small_mnist):
    x = mnist.load(directory=small_mnist).x
    assert torch.equal(mnist.resample(x, 28), x)
    for side in (0, -3):
        with pytest.raises(AdvlabError, match="side"):
            mnist.resample(x, side)


def test_rescaled_vectors_have_the_norm_and_their_direction():
    x = torch.rand(9, 30, generator=generator("rows")) * torch.logspace(-12, 12, 9)[:, None]
    for norm in (0.1, 5.0, 300.0):
        scaled = mnist.rescale(x, norm)
        lengths = scaled.double().square().sum(1).sqrt()
        torch.testing.assert_close(lengths, torch.full_like(lengths, norm), rtol=1e-7, atol=0)
        torch.testing.assert_close(scaled / scaled[:, :1], x / x[:, :1])
    wide = mnist.rescale(x.double(), 2.0).square().sum(1)
    torch.testing.assert_close(wide, torch.full_like(wide, 4.0), rtol=1e-14, atol=0)
    for norm in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(AdvlabError, match="norm above 0"):
            mnist.rescale(x, norm)
    x[4] = 0
    with pytest.raises(AdvlabError, match="row 4 of zeros"):
        mnist.rescale(x, 1.0)


def test_a_pair_of_digits_has_labels_of_both_signs(small_mnist):
    images = mnist.load((3, 7), directory=small_mnist)
    x, y = mnist.pair((7, 3), side=10, norm=2.5, directory=small_mnist)
    assert x.shape == (12, 100)
    assert x.dtype == y.dtype == torch.float32
    assert y.tolist() == [1.0 if digit == 3 else -1.0 for digit in images.y]
    small = mnist.resample(images.x, 10).flatten(1)
    torch.testing.assert_close(x, 2.5 * small / small.norm(dim=1, keepdim=True))
    drawn = mnist.pair((7, 3), norm=1.0, n=5, directory=small_mnist, rng=generator("p"))
    same = mnist.load((7, 3), 5, small_mnist, rng=generator("p"))
    assert drawn.x.shape == (5, 784)
    assert torch.equal(drawn.y == 1, same.y == 3)


@pytest.mark.parametrize(
    "wrong",
    [{"digits": (1, 1)}, {"digits": (1, 12)}, {"side": 0}, {"norm": 0.0}, {"n": 99}],
)
def test_wrong_pairs_are_refused(small_mnist, wrong):
    with pytest.raises(AdvlabError):
        mnist.pair(**{"norm": 1.0, "directory": small_mnist, **wrong})


def test_real_zeros_and_ones_keep_apart_at_every_size(real_data):
    """The nearest of two class means finds a digit at 5 x 5 pixels already."""
    for side in (5, 28):
        x, y = mnist.pair(side=side, norm=1.0, directory=real_data)
        assert (len(y), int((y == -1).sum())) == (12665, 5923)
        rule = x[y == 1].mean(0) - x[y == -1].mean(0)
        test = mnist.pair(side=side, norm=1.0, directory=real_data, split="test")
        middle = (x[y == 1].mean(0) + x[y == -1].mean(0)) / 2
        right = ((test.x - middle) @ rule).sign() == test.y
        assert float(right.float().mean()) > 0.95


@pytest.mark.parametrize("packed", [True, False])
def test_other_bytes_of_the_published_size_are_refused(tmp_path, packed):
    folder = tmp_path / "mnist"
    folder.mkdir()
    labels = struct.pack(">4BI", 0, 0, 8, 1, 10_000) + bytes(10_000)
    images = struct.pack(">4B3I", 0, 0, 8, 3, 10_000, 28, 28) + bytes(10_000 * 784)
    if packed:
        labels = gzip.compress(labels).ljust(4542, b"\0")
        images = gzip.compress(images).ljust(1648877, b"\0")
    end = ".gz" if packed else ""
    (folder / f"t10k-images-idx3-ubyte{end}").write_bytes(images)
    (folder / f"t10k-labels-idx1-ubyte{end}").write_bytes(labels)
    with pytest.raises(AdvlabError, match=r"as it was published .* of the same size"):
        mnist.load(directory=tmp_path, split="test")
