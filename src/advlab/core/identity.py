"""What a result rests on, part by part: the code, the model as it computes, the data, the settings.

    now = Fingerprint()
    now.model(net)
    now.add("data: x", x)
    differences(stored_parts, now.parts())  # "made by other code: forward of Net changed"

Parts have names, so that a mismatch can say what differs. They are the same in every process.
Comments, docstrings and layout do not count. Nothing here imports torch.
"""

import hashlib
import random
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .source import code_hash, looked_up, own

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_KINDS = {
    "code": ("made by other code", "changed"),
    "model": ("made with another model", "changed"),
    "data": ("made with other data", "differs"),
    "settings": ("made with other settings", "differs"),
    "versions": ("made by other versions", "differs"),
}
_SHOWN = 4
_BOOKKEEPING = {"_parameters", "_buffers", "_modules", "training", "_compiled_call_impl"}
_HOOKS = re.compile(r"_(forward|backward|full_backward)\w*hooks\w*")


class Fingerprint:
    """The parts of what a result rests on, each a name and a hash.

    Names begin with their kind: "code: ", "model: ", "data: ", "settings: " or "versions: ".
    """

    def __init__(self) -> None:
        self._parts: dict[str, str] = {}
        self._walk = _Walk()

    def add(self, name: str, *sources: object) -> None:
        """Add a part that consists of some objects, and the code that they hold.

        Args:
            name: its kind and name, such as "data: x".
            sources: tensors, arrays, functions, networks, settings or any other objects.
        """
        found = hashlib.sha256("".join(map(self._walk.digest, sources)).encode())
        self._parts[name] = found.hexdigest()[:16]

    def versions(self) -> None:
        """Add the versions of what all results rest on: Python, advlab, torch."""
        self._parts["versions: Python"] = "{}.{}".format(*sys.version_info)
        for name in ("advlab", "torch"):
            found = getattr(sys.modules.get(name), "__version__", "none")
            self._parts[f"versions: {name}"] = str(found)

    def model(self, model: Any) -> None:
        """Add a model: its code, the settings of each layer, weights, types and mode.

        Args:
            model: a network in the mode in which it computes, a function, or another callable.
        """
        torch = sys.modules.get("torch")
        if not (torch and isinstance(model, torch.nn.Module)):
            name = getattr(model, "__qualname__", type(model).__name__)
            self.add(f"model: {_spoken(name)}", model)
            return
        first: dict[int, str] = {}
        tensors: dict[str, Any] = {}
        modes = []
        for place, module in model.named_modules():  # type: ignore[attr-defined]
            held = _tensors(module)
            shapes = [
                (name, tuple(value.shape), first.setdefault(id(value), f"{place}.{name}"))
                for name, value in held.items()
            ]
            tensors |= {f"{place}.{name}": value for name, value in held.items()}
            modes.append((place, module.training))
            layer = f"layer {place} ({type(module).__name__})" if place else type(module).__name__
            children = [(name, child is None) for name, child in module._modules.items()]
            self.add(f"model: {layer}", type(module), _attributes(module), shapes, children)
        self.add("model: types of the weights", [str(one.dtype) for one in tensors.values()])
        self.add("model: weights", list(tensors.items()))
        self.add("model: mode (train or eval)", modes)

    def parts(self) -> dict[str, str]:
        """All parts by name, with the code that was reached from any of them."""
        return {**self._parts, **{f"code: {name}": text for name, text in self._walk.code()}}


def differences(were: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What differs between the parts of two results, in one line; empty if nothing does.

    Args:
        were: the parts that were stored.
        now: the parts of the present call.

    Example:
        from advlab.core.identity import differences
        differences(stored, now)  # "made with other data: y differs"
    """
    found: dict[str, list[str]] = {}
    for part in [*now, *(part for part in were if part not in now)]:
        if were.get(part) != now.get(part):
            kind, _, name = part.partition(": ")
            if kind == "versions":
                name = f"{name} {were.get(part, 'none')}, now {now.get(part, 'none')},"
            found.setdefault(kind, []).append(name)
    return "; ".join(_sentence(kind, many) for kind, many in found.items())


def _sentence(kind: str, names: list[str]) -> str:
    start, end = _KINDS.get(kind, (f"made with another {kind}", "differs"))
    shown = ", ".join(names[:_SHOWN])
    if len(names) > _SHOWN:
        shown += f" and {len(names) - _SHOWN} more"
    if end == "differs" and len(names) > 1:
        end = "differ"
    return f"{start}: {shown} {end}"


class _Walk:
    """A walk over objects and all that they hold; the code they reach is followed by name."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[object, str]] = {}  # the object is kept: ids are used again
        self.path: list[int] = []
        self.waiting: list[Any] = []
        self.reached: dict[int, object] = {}
        self.sources: dict[str, set[str]] = {}

    def digest(self, source: object) -> str:
        """The hash of an object's values; the code it holds is put on the list to follow."""
        if isinstance(source, _PLAIN):
            return _hash(f"{type(source).__name__} {source!r}")
        while isinstance(source, FunctionType) and not own(_module(source)):
            # A package's decorator stands in the source of what it decorates.
            inner = getattr(source, "__wrapped__", None)
            if inner is None:
                break
            source = inner
        if id(source) in self.path:
            return _hash(f"the object {len(self.path) - self.path.index(id(source))} above")
        if id(source) not in self.found:
            self.path.append(id(source))
            found = hashlib.sha256()
            for part in self.parts(source):
                found.update(part.encode() if isinstance(part, str) else part)
            self.path.pop()
            self.found[id(source)] = source, found.hexdigest()
        return self.found[id(source)][1]

    def code(self) -> list[tuple[str, str]]:
        """All code that was reached, by name; that of advlab under one name."""
        while self.waiting:
            self.follow(self.waiting.pop())
        return [(name, _hash("".join(sorted(many)))[:16]) for name, many in self.sources.items()]

    def parts(self, source: Any) -> Iterator[Any]:
        yield type(source).__qualname__
        torch = sys.modules.get("torch")  # where it is not loaded there are no tensors
        described = getattr(type(source), "__fingerprint__", None)
        if described is not None:
            self.reach(type(source))
            yield self.digest(described(source))
        elif torch and isinstance(source, torch.Tensor):
            yield from _tensor_bytes(torch, source)
        elif torch and isinstance(source, torch.Generator):
            yield from _tensor_bytes(torch, source.get_state())
        elif torch and isinstance(source, torch.nn.Module):
            yield from self.each((type(source), _attributes(source), source.training))
            yield from self.each((*_tensors(source).items(), *source._modules.items()))
        elif isinstance(source, FunctionType):
            yield from self.function(source)
        elif isinstance(source, MethodType):
            yield from self.each((source.__func__, source.__self__))
        elif isinstance(source, partial):
            yield from self.each((source.func, source.args, source.keywords))
        elif isinstance(source, type | ModuleType | BuiltinFunctionType):
            self.reach(source)
            yield _name(source)
        elif isinstance(source, np.ndarray) and source.dtype != object:
            yield f"{source.dtype} {source.shape}"
            yield np.ascontiguousarray(source).tobytes()
        elif isinstance(source, np.random.Generator):
            yield repr(source.bit_generator.state)
        elif isinstance(source, random.Random):
            yield repr(source.getstate())
        elif isinstance(source, dict):
            yield from self.each(one for pair in source.items() for one in pair)
        elif isinstance(source, list | tuple):
            yield from self.each(source)
        elif isinstance(source, set | frozenset):
            yield from sorted(self.each(source))
        else:
            yield from self.instance(source)

    def each(self, sources: Iterable[object]) -> Iterator[str]:
        yield from map(self.digest, sources)

    def function(self, source: FunctionType) -> Iterator[str]:
        if own(_module(source)):
            self.reach(source)
            yield code_hash(source.__code__)
        else:
            yield f"{_module(source)} {source.__qualname__}"
        yield from self.each((source.__defaults__, source.__kwdefaults__))
        yield from self.each(_contents(cell) for cell in source.__closure__ or ())

    def instance(self, source: Any) -> Iterator[str]:
        self.reach(type(source))
        wrapped = getattr(source, "__wrapped__", None)  # of functools.cache, for one
        if isinstance(wrapped, FunctionType):
            yield self.digest(wrapped)
            return
        slots = [name for kind in type(source).__mro__ for name in _slots(kind)]
        fields = {**getattr(source, "__dict__", {}), **{n: getattr(source, n, None) for n in slots}}
        yield _name(type(source))
        if fields:
            yield from self.each(one for pair in sorted(fields.items()) for one in pair)
        else:
            yield re.sub(r" at 0x[0-9a-f]+", "", repr(source))

    def reach(self, source: object) -> None:
        """Put a function, a class or a module on the list of code to follow, once."""
        if id(source) not in self.reached and isinstance(source, FunctionType | type):
            self.reached[id(source)] = source
            self.waiting.append(source)

    def follow(self, source: Any) -> None:
        """Note the code of a function or a class, and reach what it names."""
        if isinstance(source, FunctionType):
            where = _module(source)
            self.note(where, _spoken(source.__qualname__), code_hash(source.__code__))
            for name, value in looked_up(source):
                self.named(where, name, value)
            return
        for kind in source.__mro__:
            if not own(kind.__module__):
                continue
            bases = " ".join(map(_name, kind.__bases__))
            self.note(kind.__module__, f"class {kind.__name__}", _hash(bases))
            for name, value in vars(kind).items():
                for part in _unwrapped(value):
                    dunder = name.startswith("__") and name.endswith("__")
                    if isinstance(part, FunctionType | type) or not dunder:
                        self.named(kind.__module__, f"{name} of {kind.__name__}", part)

    def named(self, module: str, name: str, value: Any) -> None:
        """What code finds under a name: more code, a value that counts, or neither."""
        if isinstance(value, FunctionType | MethodType | partial) or hasattr(value, "__wrapped__"):
            text = self.digest(value)
            if isinstance(value, partial | MethodType):
                self.note(module, name, text)
        elif isinstance(value, type):
            if own(value.__module__):
                self.reach(value)
        elif _plain(value) or (not _ours(module) and _counts(value)):
            self.note(module, name, self.digest(value))

    def note(self, module: str, name: str, text: str) -> None:
        if _ours(module):
            name, text = "advlab", f"{module} {name} {text}"
        self.sources.setdefault(name, set()).add(text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _ours(module: str) -> bool:
    return module == "advlab" or module.startswith("advlab.")


def _module(function: FunctionType) -> str:
    """Where a function was written; a decorator may have given it another's name."""
    return str(function.__globals__.get("__name__", ""))


def _name(source: Any) -> str:
    """A class or function by name; of installed packages with its module."""
    module = getattr(source, "__module__", None) or ""
    name = getattr(source, "__qualname__", None) or source.__name__
    if own(module):
        return name
    version = getattr(sys.modules.get(module.partition(".")[0]), "__version__", "")
    return f"{module}.{name} {version if isinstance(version, str) else ''}"


def _spoken(qualname: str) -> str:
    """`Net.forward` as "forward of Net"."""
    *outer, last = [part for part in qualname.split(".") if part != "<locals>"]
    last = "a lambda" if last == "<lambda>" else last
    return f"{last} of {'.'.join(outer)}" if outer else last


def _tensor_bytes(torch: Any, source: Any) -> Iterator[Any]:
    yield f"{source.dtype} {tuple(source.shape)}"
    if source.device.type == "meta":
        return
    plain = source.detach().resolve_conj().cpu()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    yield plain.contiguous().flatten().view(torch.uint8).numpy()


def _tensors(module: Any) -> dict[str, Any]:
    """The weights and buffers of one layer by name, without those of the layers in it."""
    own_ones = (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))
    return dict(own_ones)


def _attributes(module: Any) -> dict[str, object]:
    """What decides what a layer computes besides its weights and the layers in it."""
    torch = sys.modules["torch"]
    if hasattr(module, "__fingerprint__"):
        return {"fingerprint": module.__fingerprint__()}
    if isinstance(module, torch.jit.ScriptModule):
        code = getattr(module, "code_with_constants", None) if hasattr(module, "code") else None
        return {"code": code and (code[0], vars(code[1]))}
    if isinstance(module, torch.fx.GraphModule):
        return {"code": module.code}
    if type(module).__name__ in ("OptimizedModule", "GuardsFn"):  # of torch.compile, torch.export
        return {}
    kept: dict[str, object] = {}
    for name, value in sorted(vars(module).items()):
        if _HOOKS.fullmatch(name):
            kept |= {name: list(value.values())} if value and hasattr(value, "values") else {}
        elif name not in _BOOKKEEPING and not name.endswith(("_hooks", "_hooks_with_kwargs")):
            kept[name] = value
    return kept


def _contents(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ()) if own(kind.__module__) else ()
    return [slots] if isinstance(slots, str) else list(slots)


def _unwrapped(value: Any) -> list[Any]:
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, property):
        return [part for part in (value.fget, value.fset) if part is not None]
    return [value]


def _plain(value: object) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(_plain, value)))


def _counts(value: object) -> bool:
    """Whether a user's global object counts: not one of a package, such as a logger or a lock."""
    torch = sys.modules.get("torch")
    if torch and isinstance(value, torch.Tensor | torch.nn.Module):
        return True
    return isinstance(value, list | tuple | dict | set | np.ndarray) or own(type(value).__module__)
