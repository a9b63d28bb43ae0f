"""The parts that data have of their own: the same classes, and errors where one is damaged."""

import numpy as np
import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.data import all_parts, mnist

X = torch.rand(6, 1, 2, 2, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([0, 1, 2, 0, 1, 2])
WORDS = np.array(["ant", "bee", "cat", "ant", "bee", "cat"])


def function(split):
    return {"train": (X, Y), "test": (X[:2], Y[:2])}.get(split)


def test_what_is_not_there_is_none():
    for source in ({"train": (X, Y), "test": (X[:2], Y[:2])}, function):
        train, validation, test = all_parts(source, limit=4)
        assert (len(train.y), validation, len(test.y)) == (4, None, 2)
    assert all_parts((X, Y))[1:] == (None, None)
    assert all_parts(lambda: (X, Y))[1:] == (None, None)


def test_parts_of_files_and_of_sets_by_name(tmp_path, small_mnist):
    file = tmp_path / "a.npz"
    np.savez(file, x_train=X, y_train=WORDS, x_val=X[1:3], y_val=WORDS[1:3])
    train, validation, test = all_parts(file)
    assert test is None
    assert train.classes == validation.classes == ("ant", "bee", "cat")
    assert validation.y.tolist() == [1, 2]  # by the names, not as counted in the part
    np.savez(file, x=X, y=Y)
    assert all_parts(str(file))[1:] == (None, None)
    found = all_parts("mnist", directory=small_mnist, limit=10)
    assert len(found.train.y) == 10
    assert found.validation is None
    assert torch.equal(found.test.x, mnist.load(directory=small_mnist, split="test").x)


def broken(split):
    if split == "validation":
        raise OSError("a bad sector")
    return X, Y


BAD = {
    "a part that cannot be read": (broken, "bad sector"),
    "labels without inputs": ({"y_val": Y}, "x_val"),
    "other shape": ({"x_val": X[:, :, :1], "y_val": Y}, "validation inputs of shape"),
    "other classes": ({"x_val": X, "y_val": Y + 1}, "validation labels from 0 to 2"),
    "other words": ({"y_train": WORDS, "x_val": X[:1], "y_val": np.array(["dog"])}, "dog"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_part_that_does_not_fit_is_an_error(tmp_path, name):
    source, words = BAD[name]
    if isinstance(source, dict):
        file = tmp_path / "a.npz"
        np.savez(file, **{"x_train": X, "y_train": Y, **source})
        source = file
    with pytest.raises(AdvlabError, match=words):
        all_parts(source)
