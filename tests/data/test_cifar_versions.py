"""CIFAR's Python version is read without running it; CIFAR-100; names of classes."""

import os
import pickle
import struct

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advlab.core.datafiles import recording
from advlab.core.errors import AdvlabError
from advlab.data import DATA, SETS, cifar10, cifar100, mnist
from advlab.data.directory import present
from advlab.data.pickled_batch import read_pickled
from advlab.data.published import UNPACKED
from advlab.data.recorded import changes


def python2_pickle(items: dict) -> bytes:
    """What Python 2's pickle (protocol 2) writes: byte strings, lists of small numbers, an array.

    Written opcode by opcode, as the published files were, which no Python 3 writes any more.
    """

    def word(text: str) -> bytes:
        return b"U" + bytes([len(text)]) + text.encode()

    def array(values: np.ndarray) -> bytes:
        rows, columns = values.shape
        shape = b"J" + struct.pack("<i", rows) + b"M" + struct.pack("<H", columns) + b"\x86"
        made = b"cnumpy.core.multiarray\n_reconstruct\nq\x09cnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        dtype = b"cnumpy\ndtype\n" + word("u1") + b"K\x00K\x01\x87R"
        dtype += b"(K\x03" + word("|") + b"NNN" + 2 * (b"J" + struct.pack("<i", -1)) + b"K\x00tb"
        body = values.tobytes()
        return (
            made
            + b"(K\x01"
            + shape
            + dtype
            + b"\x89T"
            + struct.pack("<i", len(body))
            + body
            + b"tb"
        )

    def value(one) -> bytes:
        if isinstance(one, np.ndarray):
            return array(one)
        if isinstance(one, str):
            return word(one)
        inner = b"".join(word(e) if isinstance(e, str) else b"K" + bytes([e]) for e in one)
        return b"]q\x03(" + inner + b"e"

    inner = b"".join(word(key) + b"q\x05" + value(one) for key, one in items.items())
    return b"\x80\x02}q\x01(" + inner + b"u."


def batch(n: int, seed: int = 0, classes: int = 10):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 3072), dtype=np.uint8), [
        int(k) for k in rng.integers(0, classes, n)
    ]


def write_python_cifar10(folder):
    folder.mkdir(parents=True)
    for k, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        x, y = batch(3, k)
        items = {"batch_label": "some", "labels": y, "data": x, "filenames": ["a.png"] * 3}
        (folder / name).write_bytes(python2_pickle(items))


@pytest.mark.parametrize(
    "folder", ["cifar10", "cifar10/cifar-10-batches-py", "cifar-10-batches-py"]
)
def test_the_python_version_gives_the_pixels_that_were_written(tmp_path, folder):
    write_python_cifar10(tmp_path / folder)
    x, y = loaded = cifar10.load(directory=tmp_path)
    wanted = [batch(3, k) for k in range(5)]
    assert y.tolist() == [label for _, labels in wanted for label in labels]
    pixels = np.concatenate([pixels for pixels, _ in wanted]).reshape(-1, 3, 32, 32)
    assert torch.equal((x * 255).round().to(torch.uint8), torch.from_numpy(pixels))
    assert loaded.classes == cifar10.NAMES
    assert len(cifar10.load(directory=tmp_path, split="test").y) == 3
    assert len(present("cifar10", tmp_path)) == (6 if folder.startswith("cifar10") else 0)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_our_reader_agrees_with_pickle_itself(tmp_path, protocol):
    # The oracle is Python's own pickle, on files made here. Protocol 2 of Python 3 writes bytes as
    # calls, which are refused; its words and lists are the same.
    x, y = batch(4)
    items = {"fine_labels": y, "filenames": ["a", "b"], "batch_label": "x" * 300}
    if protocol > 2:
        items |= {"data": x, "columns": np.asfortranarray(x)}
    path = tmp_path / "file"
    path.write_bytes(pickle.dumps(items, protocol=protocol))
    found, wanted = read_pickled(path), pickle.loads(path.read_bytes())
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        np.testing.assert_array_equal(found[key], value)


class Evil:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_in_a_pickle_runs(tmp_path, protocol):
    marker, path = tmp_path / "ran", tmp_path / "file"
    for evil in (
        {"data": Evil(marker)},
        Evil(marker),
        [Evil(marker)],
        {"data": {"a": Evil(marker)}},
    ):
        path.write_bytes(pickle.dumps(evil, protocol=protocol))
        with pytest.raises(AdvlabError, match="without running it") as refused:
            read_pickled(path)
        assert "\n" not in str(refused.value)
    assert not marker.exists()
    pickle.loads(path.read_bytes())  # the pickle does run where pickle reads it
    assert marker.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"", b".", b"}", b"\x80\x02cos\nsystem\nU\x02ls\x85R.", b"cnumpy\nload\n.",
        b"\x8c\x02os\x8c\x06system\x93.", b"ios\nsystem\n.", b"]q\x00h\x00a.", b"}h\x00.", b"(e.",
        b"}U\x01aK\x01s", b"T\xff\xff\xff\xff.", b"}(K\x01K\x02u.", b"c" + b"a" * 500,
        b"cnumpy\nndarray\n)R.", b"}U\x01acnumpy\nndarray\n)Rs.", b"\x8e" + b"\xff" * 8 + b".",
    ],
)  # fmt: skip
def test_odd_pickles_are_refused_in_one_line(tmp_path, body):
    path = tmp_path / "file"
    path.write_bytes(body)
    with pytest.raises(AdvlabError) as refused:
        read_pickled(path)
    assert "\n" not in str(refused.value)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_pickles_give_an_error_or_the_same_kinds(tmp_path, data):
    x, y = batch(2)
    body = bytearray(python2_pickle({"labels": y, "data": x[:, :3072], "filenames": ["a", "b"]}))
    place = data.draw(st.integers(0, len(body) - 1) | st.integers(0, 200))
    if data.draw(st.booleans()):
        body[place] = data.draw(st.integers(0, 255))
    else:
        del body[place:]
    path = tmp_path / "test_batch"
    path.write_bytes(body)
    said = ""
    try:
        loaded = cifar10.load(directory=tmp_path, split="test")
        assert loaded.x.shape == (len(loaded.y), 3, 32, 32)
    except AdvlabError as error:
        said = str(error)
    assert "\n" not in said


def write_cifar100(folder, n=5):
    folder.mkdir(parents=True)
    for k, name in enumerate(("train", "test")):
        x, y = batch(n, k, 100)
        labels = np.stack([np.zeros(n, np.uint8) + 19, np.array(y, np.uint8)], 1)
        (folder / f"{name}.bin").write_bytes(np.concatenate([labels, x], 1).tobytes())


@pytest.mark.parametrize("folder", ["cifar100", "cifar100/cifar-100-binary", "cifar-100-binary"])
def test_cifar100_binary_and_python_give_the_same(tmp_path, folder):
    write_cifar100(tmp_path / "a" / folder)
    python = tmp_path / "b" / "cifar100" / "cifar-100-python"
    python.mkdir(parents=True)
    for k, name in enumerate(("train", "test")):
        x, y = batch(5, k, 100)
        items = {"coarse_labels": [19] * 5, "fine_labels": y, "data": x}
        (python / name).write_bytes(python2_pickle(items))
    for split in ("train", "test"):
        one, two = (cifar100.load(directory=tmp_path / root, split=split) for root in "ab")
        assert torch.equal(one.x, two.x)
        assert torch.equal(one.y, two.y)
    assert one.y.tolist() == batch(5, 1, 100)[1]
    assert DATA["cifar100"](directory=tmp_path / "b").classes == cifar100.NAMES
    with recording() as read:
        cifar100.load(directory=tmp_path / "a")
    assert not changes(read).changed
    assert not changes(read).missing


def test_damage_and_absence_of_cifar100_are_named(tmp_path):
    with pytest.raises(AdvlabError, match="advlab data fetch cifar100"):
        cifar100.load(directory=tmp_path)
    folder = tmp_path / "cifar100"
    write_cifar100(folder)
    file = folder / "train.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(AdvlabError, match=r"of 3074 bytes; got .*train\.bin of 15369 bytes"):
        cifar100.load(directory=tmp_path)
    file.write_bytes(bytes([0, 100]) + bytes(3072))
    with pytest.raises(AdvlabError, match="labels from 0 to 99; got labels from 100 to 100"):
        cifar100.load(directory=tmp_path)
    file.write_bytes(b"")
    os.truncate(file, 153_700_000)
    with pytest.raises(AdvlabError, match=r"train\.bin as it was published"):
        cifar100.load(directory=tmp_path)


@pytest.mark.parametrize(
    "items",
    [
        {"labels": [1], "data": np.zeros((2, 3072), np.uint8)},
        {"labels": [1, 2], "data": np.zeros((2, 3071), np.uint8)},
        {"fine_labels": [1, 2], "data": np.zeros((2, 3072), np.uint8)},
        {"labels": ["a", "b"], "data": np.zeros((2, 3072), np.uint8)},
        {"labels": [1, 2], "data": [1, 2]},
    ],
)
def test_labels_that_do_not_match_are_refused(tmp_path, items):
    (tmp_path / "test_batch").write_bytes(python2_pickle(items))
    with pytest.raises(AdvlabError, match="under data and n classes under labels"):
        cifar10.load(directory=tmp_path, split="test")


def test_known_sizes_agree_with_the_format():
    # 50,000 and 10,000 records of two labels and 3072 pixels.
    assert UNPACKED["train.bin"][0] == 50_000 * 3074
    assert UNPACKED["test.bin"][0] == 10_000 * 3074
    assert set(SETS) >= set(DATA)
    for name, files in (("cifar10", cifar10.FILES), ("cifar100", cifar100.FILES)):
        assert SETS[name].members == (*files.binary["train"], *files.binary["test"])


def test_every_set_names_its_classes(small_mnist):
    assert (len(mnist.NAMES), len(cifar10.NAMES), len(set(cifar100.NAMES))) == (10, 10, 100)
    assert list(cifar100.NAMES) == sorted(cifar100.NAMES)
    assert mnist.load(directory=small_mnist).classes == tuple("0123456789")


def test_mnist_as_one_npz(small_mnist, tmp_path):
    x, y = mnist.load(directory=small_mnist)
    pixels = (x[:, 0] * 255).round().to(torch.uint8).numpy()
    arrays = {"x_train": pixels, "y_train": y.numpy()}
    arrays |= {"x_test": pixels[:3], "y_test": y[:3].numpy()}
    np.savez(tmp_path / "mnist.npz", **arrays)
    assert torch.equal(mnist.load(directory=tmp_path).x, x)
    assert len(mnist.load(directory=tmp_path, split="test").y) == 3
    assert present("mnist", tmp_path) == [tmp_path / "mnist.npz"]
    labels = y.numpy()
    for wrong in ({"x_train": pixels / 255}, {"y_train": labels[:2]}, {"y_train": labels + 1}):
        np.savez(tmp_path / "mnist.npz", **{**arrays, **wrong})
        with pytest.raises(AdvlabError, match=r"28 x 28 bytes as labels|digits from 0 to 9"):
            mnist.load(directory=tmp_path)
