"""Data by name, file, folder or object: one function, the same rows, parts kept apart."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from advlab.core.datafiles import recording
from advlab.core.errors import AdvlabError
from advlab.data import Arrays, ImageFolder, from_arrays, mnist, resolve

X = torch.arange(24, dtype=torch.float32).reshape(6, 1, 2, 2) / 24
Y = torch.tensor([0, 1, 2, 0, 1, 2])


class Named(Dataset):
    classes = ("a", "b", "c")

    def __len__(self):
        return len(Y)

    def __getitem__(self, row):
        return X[row], int(Y[row])


def same(found: Arrays, rows=slice(None)) -> bool:
    return torch.equal(found.x, X[rows]) and torch.equal(found.y, Y[rows])


def parts(split):
    return (X, Y) if split == "train" else (X[:2], Y[:2])


OBJECTS = {
    "arrays": Arrays(X, Y, ("a", "b", "c")),
    "pair": (X, Y),
    "numpy": (X.numpy(), Y.numpy()),
    "tensors": TensorDataset(X, Y),
    "dataset": Named(),
    "loader": DataLoader(Named(), batch_size=4),
    "dict": {"train": (X, Y), "test": (X[:2], Y[:2])},
    "function": parts,
    "keyword": lambda split="train": parts(split),
    "no argument": lambda: Named(),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_every_kind_of_object_gives_the_same_rows(name):
    found = resolve(OBJECTS[name])
    assert same(found)
    assert found.y.dtype == torch.int64
    assert found.classes == (
        ("a", "b", "c") if name in ("arrays", "dataset", "no argument") else None
    )
    assert same(resolve(OBJECTS[name], limit=2), slice(2))
    if name in ("dict", "function", "keyword"):
        assert same(resolve(OBJECTS[name], split="test"), slice(2))
    else:
        with pytest.raises(AdvlabError, match="data with a test part"):
            resolve(OBJECTS[name], split="test")


def test_sets_by_name(small_mnist):
    found = resolve("mnist", split="test", directory=small_mnist, limit=7)
    wanted = mnist.load(n=7, directory=small_mnist, split="test")
    assert torch.equal(found.x, wanted.x)
    assert found.classes == wanted.classes
    with pytest.raises(AdvlabError, match="the train or test part of mnist"):
        resolve("mnist", split="validation", directory=small_mnist)


def test_npz_files_with_and_without_parts(tmp_path):
    one, many = tmp_path / "one.npz", tmp_path / "many.npz"
    np.savez(one, x=X.numpy(), y=Y.numpy())
    np.savez(
        many, x_train=X.numpy(), y_train=Y.numpy(), x_test=X[:2].numpy(), y_test=Y[:2].numpy(),
        x_val=X[2:4].numpy(), y_val=Y[2:4].numpy(),
    )  # fmt: skip
    with recording() as read:
        assert same(resolve(one))
    assert list(read) == [f"file {one}"]
    assert same(resolve(str(many)))
    assert same(resolve(many, split="test"), slice(2))
    assert same(resolve(many, split="validation"), slice(2, 4))
    with pytest.raises(AdvlabError, match=r"keys x_test and y_test; got .* with x, y"):
        resolve(one, split="test")
    np.savez(one, x=X.numpy(), y=np.array(["cat", "dog", "eel"] * 2))
    assert same(resolve(one))
    assert resolve(one).classes == ("cat", "dog", "eel")


def write_images(folder, names=("cat", "dog"), n=3):
    image = pytest.importorskip("PIL.Image")
    for k, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for i in range(n):
            pixels = np.full((4, 4), 100 * k + i, np.uint8)
            image.fromarray(pixels).save(folder / name / f"{i}.png")


def test_folders_of_images_with_and_without_parts(tmp_path):
    write_images(tmp_path / "flat")
    found = resolve(tmp_path / "flat")
    wanted = ImageFolder(tmp_path / "flat")
    assert torch.equal(found.x, torch.stack([x for x, _ in wanted]))
    assert torch.equal(found.y, wanted.targets)
    assert found.classes == ("cat", "dog")
    few = resolve(tmp_path / "flat", limit=4)
    assert len(few.y) == 4
    assert set(few.y.tolist()) == {0, 1}
    with pytest.raises(AdvlabError, match=r"a folder test in .*classes only"):
        resolve(tmp_path / "flat", split="test")
    for part, n in (("train", 3), ("val", 2), ("test", 1)):
        write_images(tmp_path / "parts" / part, n=n)
    sizes = [
        len(resolve(tmp_path / "parts", split=part).y) for part in ("train", "validation", "test")
    ]
    assert sizes == [6, 4, 2]


def test_a_class_may_be_called_test(tmp_path):
    write_images(tmp_path, names=("control", "test"))
    assert resolve(tmp_path).classes == ("control", "test")


def test_objects_of_modules_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text = "import torch\ndef load(split):\n    return torch.ones(2, 3), [0, 1]\npair = load('')\n"
    (tmp_path / "own_resolved_data.py").write_text(text)
    for source in ("own_resolved_data:load", "own_resolved_data.py:load", "own_resolved_data:pair"):
        found = resolve(source)
        assert found.x.shape == (2, 3)
        assert found.y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("minst", "did you mean mnist"),
        ("data.pkl", "a pickle can run any code"),
        ("no_such_module:x", "no module 'no_such_module'"),
        ("os:nothing", "a module without 'nothing'"),
        ("missing.npz", "does not exist"),
        (3, "data as a Dataset"),
        (X, "inputs alone"),
        ((X, Y[:3]), "6 inputs and 3 answers"),
        ((X, torch.tensor([0, 1, 2, 0, 1, 3]), ), None),
        (lambda: (X * float("nan"), Y), "finite numbers in x"),
        (lambda split, more: None, "needs split, more"),
        (lambda split: 1 / 0, "ZeroDivisionError"),
        ([], "inputs alone"),
    ],
)  # fmt: skip
def test_what_is_no_data_is_refused_in_one_line(source, says):
    if says is None:
        assert resolve(source).y.max() == 3
        return
    with pytest.raises(AdvlabError, match=says) as refused:
        resolve(source)
    assert "\n" not in str(refused.value)


def test_labels_that_do_not_match_names_are_refused():
    with pytest.raises(AdvlabError, match="labels from 0 to 1"):
        resolve(Arrays(X, Y, ("a", "b")))
    with pytest.raises(AdvlabError, match="labels from 0 to 1"):
        from_arrays(X, Y, names=("a", "b"))


@pytest.mark.parametrize("wrong", [{"split": "dev"}, {"limit": 0}, {"limit": 1.5}])
def test_odd_arguments_are_refused(wrong):
    with pytest.raises(AdvlabError):
        resolve((X, Y), **wrong)
