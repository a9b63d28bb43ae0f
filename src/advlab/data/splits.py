"""Train, validation and test parts of one set, by seed and with each class in its proportion."""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ..core import inputs
from ..core.errors import AdvlabError
from ..core.inputs import Given
from ..core.randomness import generator
from .arrays import Arrays

Size = float | int | None


class Parts(NamedTuple):
    """The parts of a set: disjoint, and together the whole."""

    train: Arrays
    validation: Arrays | None = None
    test: Arrays | None = None


def split(
    data: Given[Arrays],
    validation: Given[Size] = 0.1,
    test: Given[Size] = None,
    seed: Given[int] = 0,
) -> Parts:
    """Set examples aside, at random by seed, from each class as many as its share of the set.

    The same seed sets the same rows aside, whatever else is random. Real answers have no classes;
    then rows are drawn from all.

    Args:
        data: the examples.
        validation: how many to set aside for validation: a fraction below 1, or a whole number;
            None for no such part.
        test: the same for a test part.
        seed: which examples.

    Raises:
        AdvlabError: a part would be empty, or the train part would miss a class.

    Example:
        from advlab.data import mnist, split
        train, validation, _ = split(mnist.load(), validation=5000, seed=1)
    """
    inputs.instance("data as Arrays", data, Arrays, "for example from_arrays(x, y)")
    check_every_class(data, "the data")
    rows, rng = len(data.y), generator("data", "split", inputs.count("seed", seed, 0))
    wanted = [
        None if size is None else _count(name, size, rows)
        for name, size in (("validation", validation), ("test", test))
    ]
    classes = torch.zeros_like(data.y) if data.y.is_floating_point() else data.y
    classes = classes.to(device="cpu", dtype=torch.int64)
    order = torch.randperm(rows, generator=rng)
    left = torch.ones(rows, dtype=torch.bool)
    parts: list[Arrays | None] = []
    for count in wanted:
        if count is None:
            parts.append(None)
            continue
        chosen = _stratified(classes, order, left, count)
        left[chosen] = False
        parts.append(data.take(chosen.sort().values.to(data.y.device)))
    train = data.take(left.nonzero().flatten().to(data.y.device))
    return Parts(train, *parts)


def check_every_class(data: Arrays, name: str = "the training set") -> None:
    """Refuse a set in which a class has no example: nothing could be learned of it.

    Args:
        data: the examples; real answers have no classes.
        name: what to call the set in the error.
    """
    if data.y.is_floating_point():
        return
    if int(data.y.min()) < 0:
        raise AdvlabError(f"classes from 0 on in {name}", f"{int(data.y.min())}")
    there = torch.bincount(data.y.cpu())
    classes = len(there) if data.classes is None else len(data.classes)
    if len(there) > classes:
        raise AdvlabError(
            f"labels from 0 to {classes - 1}, as there are {classes} class names",
            f"label {len(there) - 1}",
        )
    missing = [c for c in range(classes) if c >= len(there) or there[c] == 0]
    if missing:
        called = (
            missing[0] if data.classes is None else f"{missing[0]} ({data.classes[missing[0]]})"
        )
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise AdvlabError(
            f"examples of each of the {classes} classes in {name}",
            f"none of class {called}{more}",
            "number classes 0, 1, ... without gaps, and take enough examples",
        )


def _count(name: str, size: Any, rows: int) -> int:
    whole = isinstance(size, int) and not isinstance(size, bool)
    if not whole and not (isinstance(size, float) and 0 <= size < 1):
        raise AdvlabError(f"{name} as a fraction below 1, a whole number, or None", f"{size!r:.40}")
    found = int(size) if whole else round(size * rows)
    if not 1 <= found < rows:
        raise AdvlabError(
            f"a {name} part of 1 to {rows - 1} of {rows} examples",
            f"{size}, which is {found}",
            "None asks for no such part",
        )
    return found


def _stratified(
    classes: Int[Tensor, " n"], order: Int[Tensor, " n"], left: Bool[Tensor, " n"], count: int
) -> Int[Tensor, " count"]:
    """Rows to set aside: of each class the first of its quota in a random order.

    Quotas are rounded by the largest remainder, so that they sum to `count`. One example of each
    class stays.
    """
    order = order[left[order]]
    there = torch.bincount(classes[order]).tolist()
    room = [max(n - 1, 0) for n in there]
    if sum(room) < count:
        raise AdvlabError(
            f"at most {sum(room)} examples set aside, so that one of each class stays to train on",
            count,
        )
    shares = [n * count / sum(there) for n in there]
    quotas = [min(math.floor(share), most) for share, most in zip(shares, room, strict=True)]
    while sum(quotas) < count:
        behind = [
            (share - quota, -c)
            for c, (share, quota) in enumerate(zip(shares, quotas, strict=True))
            if quota < room[c]
        ]
        quotas[-max(behind)[1]] += 1
    sorted_by_class = order[torch.argsort(classes[order], stable=True)]
    firsts = [0, *torch.tensor(there).cumsum(0).tolist()]
    return torch.cat(
        [
            sorted_by_class[first : first + quota]
            for first, quota in zip(firsts, quotas, strict=False)
        ]
    )
