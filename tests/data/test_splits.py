"""Splits: disjoint, whole, by seed, each class in its proportion; what cannot be is refused."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advlab.core.errors import AdvlabError
from advlab.data import Arrays, check_every_class, from_arrays, split

law = settings(max_examples=40, deadline=None)


def numbered(y, classes=None) -> Arrays:
    """Examples whose input is their own row number."""
    y = torch.as_tensor(y)
    return Arrays(torch.arange(len(y), dtype=torch.float64)[:, None], y, classes)


def rows(part: Arrays) -> list[int]:
    return part.x.flatten().long().tolist()


@law
@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=6), data=st.data(),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_parts_are_disjoint_whole_and_in_proportion(counts, data, seed):
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(counts)])
    y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))]
    room = len(y) - len(counts)
    assume(room >= 2)
    aside = data.draw(st.integers(1, room - 1))
    test = data.draw(st.none() | st.integers(1, room - aside))
    whole = numbered(y, tuple(map(str, range(len(counts)))))
    parts = split(whole, validation=aside, test=test, seed=seed)
    there = [part for part in parts if part is not None]
    assert sorted(row for part in there for row in rows(part)) == list(range(len(y)))
    assert len(parts.validation.y) == aside
    assert (parts.test is None) if test is None else (len(parts.test.y) == test)
    for part in there:
        assert part.classes == whole.classes
        assert rows(part) == sorted(rows(part))
        assert torch.equal(part.y, y[torch.tensor(rows(part))])
    assert set(parts.train.y.tolist()) == set(range(len(counts)))
    # Quotas that no class caps are within one of the exact share.
    shares = [n * aside / len(y) for n in counts]
    if all(share <= n - 1 for share, n in zip(shares, counts, strict=True)):
        found = torch.bincount(parts.validation.y, minlength=len(counts)).tolist()
        assert all(abs(f - s) < 1 for f, s in zip(found, shares, strict=True))
    again = split(whole, validation=aside, test=test, seed=seed)
    assert [rows(part) for part in again if part is not None] == [rows(part) for part in there]


def test_the_seed_chooses_and_nothing_else_does():
    whole = numbered(torch.arange(200) % 10)
    torch.manual_seed(0)
    one = rows(split(whole, seed=0).validation)
    torch.manual_seed(1)
    assert rows(split(whole, seed=0).validation) == one
    assert rows(split(whole, seed=1).validation) != one
    assert len(one) == 20
    assert rows(split(whole, validation=0.25).validation) != one


def test_real_answers_are_split_too():
    whole = numbered(torch.linspace(-1, 1, 50))
    train, validation, test = split(whole, 0.2, 0.1)
    assert [len(part.y) for part in (train, validation, test)] == [35, 10, 5]
    assert sorted(rows(train) + rows(validation) + rows(test)) == list(range(50))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: split(numbered([0, 1, 0, 1]), validation=0), "a validation part of 1 to 3"),
        (lambda: split(numbered([0, 1, 0, 1]), validation=0.01), "0.01, which is 0"),
        (lambda: split(numbered([0, 1, 0, 1]), validation=4), "a validation part of 1 to 3"),
        (lambda: split(numbered([0, 1, 0, 1]), validation=1.0), "fraction below 1"),
        (lambda: split(numbered([0, 1, 0, 1]), validation=-1), "validation part"),
        (lambda: split(numbered([0, 1, 0, 1]), validation=True), "fraction below 1"),
        (lambda: split(numbered([0, 1, 0, 1]), validation="a"), "fraction below 1"),
        (lambda: split(numbered([0, 1, 0, 1]), validation=1, test=2), "at most 1 examples"),
        (lambda: split(numbered([0, 1, 0, 1]), validation=3), "at most 2 examples"),
        (lambda: split(numbered([0, 2, 0, 2])), "none of class 1"),
        (lambda: split(numbered([0, 0], ("a", "b", "c"))), r"none of class 1 \(b\) and 1 more"),
        (lambda: split(numbered([0, 1, 2], ("a", "b"))), "as there are 2 class names; got label 2"),
        (lambda: split(numbered([-1, 1, -1, 1])), "classes from 0 on"),
        (lambda: split(numbered([0, 1]), seed=-1), "seed"),
        (lambda: split(torch.zeros(3)), "data as Arrays"),
    ],
)
def test_what_cannot_be_split_is_refused_in_one_line(make, says):
    with pytest.raises(AdvlabError, match=says) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_limit_and_take_keep_the_names():
    whole = numbered([2, 0, 1, 2], ("a", "b", "c"))
    assert rows(whole.limit(2)) == [0, 1]
    assert rows(whole.limit(9)) == [0, 1, 2, 3]
    assert rows(whole.take(torch.tensor([3, 1]))) == [3, 1]
    assert whole.limit(2).classes == whole.take(torch.tensor([0])).classes == ("a", "b", "c")
    with pytest.raises(AdvlabError, match="limit"):
        whole.limit(0)
    with pytest.raises(AdvlabError, match="none of class 1"):
        check_every_class(whole.limit(2))


def test_arrays_are_a_pair_that_knows_names():
    x, y = whole = from_arrays([[0.0], [1.0]], [0, 1], names=["a", "b"])
    assert whole.classes == ("a", "b")
    assert len(whole) == 2
    assert torch.equal(whole.x, x)
    assert torch.equal(whole[1], y)
    with pytest.raises(AdvlabError, match="labels from 0 to 0"):
        from_arrays(x, y, names=["a"])
