"""A pretend accelerator: tensors that live elsewhere and refuse what real accelerators refuse.

The tests need no accelerator. A `PretendTensor` wraps an ordinary tensor and reports the device
type `lazy`, which PyTorch knows and no installation uses (autograd runs it on the caller's thread).
Every operator on it passes through `__torch_dispatch__`, which

- refuses operands on the CPU, apart from numbers (0-dim tensors) where real devices take them;
- refuses a CPU generator that would fill a pretend tensor;
- counts what makes the host wait for the device: `item`, `bool`, `tolist`, `nonzero`, masks as
  indices, copies to the CPU;
- computes the rest on the wrapped CPU tensors, so numbers equal the CPU's bit for bit.

`numpy()` on a pretend tensor fails inside PyTorch, as it does on every device that is not the CPU.

    with PretendDevice() as device:
        model.to(device.place)
        PGD()(ModelLoss(model, y.to(device.place)), x.to(device.place), ball, rng=generator("pgd"))
    print(device.synchronisations)
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

PLACE = torch.device("lazy")

_COPIES = {"aten::_to_copy", "aten::copy_"}
_WAITS = {
    "aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal",
    "aten::is_nonzero", "aten::unique_consecutive", "aten::_unique2", "aten::unique_dim",
}  # fmt: skip
_INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
_JOINING = {"aten::cat", "aten::stack"}

_present: "list[PretendDevice]" = []
_kernels = torch.library.Library("aten", "IMPL")


class PretendTensor(Tensor):
    """A tensor on the pretend device; `held` is the ordinary tensor with its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "PretendTensor":
        if held.dtype == torch.float64 and _present and not _present[-1].float64:
            raise TypeError("Cannot convert to float64: the pretend device has no float64")
        made = Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(),
            dtype=held.dtype, device=PLACE, requires_grad=False,
        )  # fmt: skip
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return _run(func, args, dict(kwargs or {}))

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, values: "PretendTensor") -> None:
        Tensor.data.__set__(self, values)  # type: ignore[attr-defined]
        self.held = values.held

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.held.untyped_storage()

    def data_ptr(self) -> int:
        return self.held.data_ptr()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __repr__(self, **_: object) -> str:
        return f"PretendTensor({self.held})"


class PretendDevice(TorchDispatchMode):
    """While it is entered, `device="lazy"` makes pretend tensors; counts what the host waited for.

    Args:
        float64: whether the device has double precision (Apple's does not).
    """

    place = PLACE

    def __init__(self, *, float64: bool = True) -> None:
        super().__init__()
        self.float64 = float64
        self.synchronisations: Counter[str] = Counter()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled here, and the default would import the whole compiler.
        return False

    def __enter__(self) -> "PretendDevice":
        _present.append(self)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        _present.pop()
        super().__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if _is_here(kwargs.get("device")) or _any_pretend(types):
            return _run(func, args, kwargs)
        return func(*args, **kwargs)


def _run(func: Any, args: tuple, kwargs: dict) -> Any:
    name = func._schema.name
    there = _is_here(kwargs.get("device"))
    given, spec = tree_flatten((args, kwargs))
    mine = [one for one in given if isinstance(one, PretendTensor)]
    _refuse_generator(name, given)
    if name not in _COPIES:
        _refuse_mixed(name, args, given)
    to_host = name in _COPIES and not there and _ends_on_host(name, args, kwargs)
    if to_host or name in _WAITS or (name in _INDEXING and _waits_for_index(args)):
        _count(name)
    leaves = kwargs.get("device") is not None and not there
    leaves = leaves or (name == "aten::copy_" and not isinstance(args[0], PretendTensor))
    plain = [one.held if isinstance(one, PretendTensor) else one for one in given]
    own_args, own_kwargs = tree_unflatten(plain, spec)
    if there:
        own_kwargs["device"] = torch.device("cpu")
    out = func(*own_args, **own_kwargs)
    if torch.Tag.inplace_view in func.tags:  # the wrapper's own shape follows
        args[0].data = PretendTensor(args[0].held)
    if leaves:
        return out
    held = {id(one.held): one for one in mine}
    if isinstance(out, Tensor):
        return _wrap(out, held)
    return tree_map(lambda v: _wrap(v, held) if isinstance(v, Tensor) else v, out)


def _wrap(found: Tensor, held: dict[int, PretendTensor]) -> PretendTensor:
    """What an operator gave; an operand written in place stays the object that it was."""
    if isinstance(found, PretendTensor):
        return found
    return held[id(found)] if id(found) in held else PretendTensor(found)


def _unwrap(value: object) -> object:
    return value.held if isinstance(value, PretendTensor) else value


def _any_pretend(types: Iterable[type]) -> bool:
    return any(issubclass(one, PretendTensor) for one in types)


def _is_here(device: object) -> bool:
    return device is not None and torch.device(device).type == PLACE.type  # type: ignore[arg-type]


def _refuse_generator(name: str, given: list) -> None:
    for one in given:
        if isinstance(one, torch.Generator):
            raise RuntimeError(
                f"{name}: expected a '{PLACE}' device type for generator but found '{one.device}'"
            )


def _refuse_mixed(name: str, args: tuple, given: list) -> None:
    others = [
        one for one in given if isinstance(one, Tensor) and not isinstance(one, PretendTensor)
    ]
    if not others:
        return
    own = isinstance(args[0], PretendTensor) if args else True
    if name in _INDEXING and own:
        taken = {id(one) for one in tree_leaves(args[1])}
        others = [one for one in others if id(one) not in taken]
    writes = name.endswith("_") and args and isinstance(args[0], Tensor) and not own
    for one in others:
        if one.ndim or name in _JOINING or writes:
            raise RuntimeError(
                f"{name}: expected all tensors to be on the same device, but found at least two, "
                f"{PLACE} and {one.device} ({tuple(one.shape)})"
            )


def _waits_for_index(args: tuple) -> bool:
    """A mask must be counted before the result has a shape; an index on the host must travel."""
    return any(
        isinstance(one, Tensor)
        and (one.dtype in (torch.bool, torch.uint8) or not isinstance(one, PretendTensor))
        for one in tree_leaves(args[1])
    )


def _ends_on_host(name: str, args: tuple, kwargs: dict) -> bool:
    if name == "aten::copy_":
        return not isinstance(args[0], PretendTensor)
    return kwargs.get("device") is not None and isinstance(args[0], PretendTensor)


def _count(name: str) -> None:
    if not _present:
        return
    frame = sys._getframe(2)
    while frame is not None and "/advlab/" not in frame.f_code.co_filename:
        frame = frame.f_back
    where = "outside"
    if frame is not None:
        where = f"{frame.f_code.co_filename.rpartition('/advlab/')[2]}:{frame.f_lineno}"
    _present[-1].synchronisations[f"{where} {name.removeprefix('aten::')}"] += 1


# `torch.tensor(..., device="lazy")` makes its tensor below Python's reach, by these kernels alone.
def _empty(size: list[int], *, dtype: torch.dtype | None = None, **_: object) -> Tensor:
    return PretendTensor(torch.empty(size, dtype=dtype))


def _empty_strided(
    size: list[int], stride: list[int], *, dtype: torch.dtype | None = None, **_: object
) -> Tensor:
    return PretendTensor(torch.empty_strided(size, stride, dtype=dtype))


def _copy(to: Tensor, values: Tensor, non_blocking: bool = False) -> Tensor:
    to.held.copy_(values)  # type: ignore[attr-defined]
    return to


_kernels.impl("empty.memory_format", _empty, "Lazy")
_kernels.impl("empty_strided", _empty_strided, "Lazy")
_kernels.impl("copy_", _copy, "Lazy")


def both(run: Callable[[torch.device], Any], *, float64: bool = True) -> tuple[Any, Any]:
    """What `run` gives on the CPU and on the pretend device, brought to the CPU.

    Args:
        run: makes everything it needs from its own seeds, on the device it is given.
        float64: whether the pretend device has double precision.
    """
    plain = run(torch.device("cpu"))
    with PretendDevice(float64=float64) as device:
        found = run(device.place)
    return plain, tree_map(_unwrap, found)
