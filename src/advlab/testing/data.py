"""The laws of data models."""

import torch
from torch import Tensor

from ..core.inputs import Given, instance
from ..core.randomness import generator, generators
from ..data import DataModel
from .law import Laws


def check_data(data: Given[DataModel], *, seed: int = 0) -> None:
    """Hold a data model to the laws that experiments rely on.

    A draw is a named tuple of tensors with one row per example in `x` and all that belongs to
    examples; the same generator gives the same bits, another one others; the global generator is
    neither used nor moved; n is what was asked for; replicates of a stack are what they are alone.

    Args:
        data: The data model.
        seed: Of the draws.

    Raises:
        LawBroken: Naming the law, with numbers. It is an AssertionError too.

    Example:
        >>> from advlab.testing import check_data
        >>> check_data(Halfspace(n=20, d=5))
    """
    instance("a data model", data, DataModel, "for arrays there is advlab.data.from_arrays")
    laws = Laws(data)

    def drawn(k: int, n: int | None = None) -> dict[str, Tensor]:
        sample = data.sample(generator("check_data", seed + k), n)
        names = getattr(sample, "_fields", None)
        laws.holds("a draw is a named tuple", names is not None, type(sample).__name__)
        parts: dict[str, Tensor] = dict(zip(names or (), sample, strict=True))
        for name, part in parts.items():
            laws.holds("a draw holds tensors", isinstance(part, Tensor), f"{name}: {type(part)}")
        return parts

    before = torch.get_rng_state()
    first = drawn(0)
    laws.same("it leaves the global generator alone", torch.get_rng_state(), before)
    laws.holds("a draw has inputs, x", "x" in first, ", ".join(first))
    laws.holds("there are as many inputs as the model's n", len(first["x"]) == data.n,
               f"{len(first['x'])} for n = {data.n}")  # fmt: skip
    try:
        torch.manual_seed(seed + 12345)
        again = drawn(0)
    finally:
        torch.set_rng_state(before)
    for name, part in first.items():
        laws.same(f"the same generator gives the same {name}", again[name], part)
        if part.is_floating_point():
            laws.holds(f"{name} is finite", torch.isfinite(part).reshape(len(part), -1).all(1))
    other = drawn(1)
    differs = any(not torch.equal(other[name], part) for name, part in first.items())
    laws.holds("another generator gives other draws", differs, "the same numbers")
    more = drawn(0, 2 * data.n)
    laws.holds("n may be asked for", len(more["x"]) == 2 * data.n,
               f"{len(more['x'])} for n = {2 * data.n}")  # fmt: skip
    _stacks(laws, data, seed)


def _stacks(laws: Laws, data: DataModel, seed: int) -> None:
    seeds = [seed, seed + 1, seed + 2]
    stack = data.sample_stack(generators("check_data", seeds=seeds))
    for k in seeds:
        alone = data.sample(generator("check_data", k))
        for name, whole, one in zip(alone._fields, stack, alone, strict=True):  # type: ignore[attr-defined]
            laws.same(f"a replicate of a stack has the {name} it has alone", whole[k - seed], one)
