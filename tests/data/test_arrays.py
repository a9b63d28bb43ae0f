"""A user's own arrays: what is let in, what is refused, and what the refusal says."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from advlab.core.errors import AdvlabError
from advlab.data import arrays, from_arrays

X, Y = np.zeros((4, 2)), np.array([0, 1, 2, 1])


@given(
    x=hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.uint8, np.int32, ">f8", ">i2"]),
        hnp.array_shapes(min_dims=2, max_dims=4),
        elements=st.integers(0, 100),
    )
)
def test_numbers_come_through_unchanged(x):
    y = np.arange(len(x), dtype=np.uint8)
    data = from_arrays(x, y, classes=len(x), box=(0.0, 100.0))
    assert data.x.dtype == (torch.float64 if x.dtype.itemsize == 8 else torch.float32)
    assert data.y.dtype == torch.int64
    np.testing.assert_array_equal(data.x.numpy(), x)
    np.testing.assert_array_equal(data.y.numpy(), y)


def test_tensors_lists_and_views_are_let_in():
    x = torch.rand(3, 1, 2, 2, requires_grad=True)
    data = from_arrays(x, torch.tensor([0.5, 1.5, 2.5]))
    assert torch.equal(data.x, x)
    assert not data.x.requires_grad
    assert data.y.dtype == torch.float32
    assert from_arrays([[1, 2], [3, 4]], [0, 1]).x.tolist() == [[1, 2], [3, 4]]
    frozen = np.arange(6.0).reshape(3, 2)[::-1]
    frozen.flags.writeable = False
    assert from_arrays(frozen, [0, 1, 2]).x.tolist() == [[4, 5], [2, 3], [0, 1]]


def with_entry(value):
    x = X.copy()
    x[2, 1] = value
    return x


@pytest.mark.parametrize(
    ("x", "y", "limits", "says"),
    [
        (with_entry(np.nan), Y, {}, r"x; got 1 NaN or infinite, the first at \(2, 1\)"),
        (with_entry(-np.inf), Y, {}, "finite numbers in x"),
        (X, [0.0, 1.0, np.nan, 1.0], {}, "finite numbers in y"),
        (X, Y[:3], {}, "4 inputs and 3 answers"),
        (X[:, 0], Y, {}, r"\(4,\)"),
        (X, np.eye(4), {}, "argmax"),
        (X[:0], Y[:0], {}, "at least one example"),
        (X, Y, {"classes": 2}, "labels from 0 to 1; got labels from 0 to 2"),
        (X, Y - 1, {"classes": 3}, "labels from -1 to 1"),
        (X, Y.astype(float), {"classes": 3}, "whole numbers as labels"),
        (with_entry(255), Y, {"box": (0.0, 1.0)}, "values from 0 to 255"),
        (X, Y, {"box": (1.0, 0.0)}, "low < high"),
        (X.astype(complex), Y, {}, "complex"),
        (X.astype(str), Y, {}, "dtype <U"),
        (X.astype(object), Y, {}, "dtype object"),
        (torch.zeros(4, 2, dtype=torch.complex64), Y, {}, "complex"),
        ([[1, 2], [3]], [0, 1], {}, "different lengths"),
    ],
)
def test_mistakes_are_named(x, y, limits, says):
    with pytest.raises(AdvlabError, match=says):
        from_arrays(x, y, **limits)


@pytest.mark.parametrize("keys", [("x", "y"), ("images", "labels")])
def test_npz_files_are_read(tmp_path, keys):
    np.savez(tmp_path / "own.npz", **{keys[0]: X, keys[1]: Y})
    data = arrays.load(tmp_path / "own.npz", classes=3, box=(0.0, 1.0))
    assert data.x.shape == (4, 2)
    assert data.y.tolist() == Y.tolist()


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a file was unpickled",))


def test_a_pickle_is_refused_and_not_run(tmp_path):
    np.savez(tmp_path / "bomb.npz", x=np.array([Bomb()], dtype=object), y=Y)
    with pytest.raises(AdvlabError, match="plain numbers"):
        arrays.load(tmp_path / "bomb.npz")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(AdvlabError, match="does not exist"):
        arrays.load(tmp_path / "none.npz")
    np.savez(tmp_path / "keys.npz", a=X, y=Y)
    with pytest.raises(AdvlabError, match="with a, y"):
        arrays.load(tmp_path / "keys.npz")
    np.save(tmp_path / "one.npy", X)
    with pytest.raises(AdvlabError, match="plain numbers"):
        arrays.load(tmp_path / "one.npy")
    whole = tmp_path / "whole.npz"
    np.savez(whole, x=X, y=Y)
    (tmp_path / "half.npz").write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(AdvlabError, match=r"half\.npz"):
        arrays.load(tmp_path / "half.npz")
