"""Which source code a function can reach, read from the source without running it.

A module is a list of top-level statements. In the modules of papers, in the `__init__` files of
packages and in a user's own files a statement is reached

- if it defines a name that a reached statement uses, or
- if it may act by itself: a class, a decorated function, or anything but a function, a plain
  assignment or an import. These are reached as soon as anything in their module is.

Other modules of advlab are reached as a whole. Imports are followed wherever they stand, also
inside functions. Where names may be looked up at run time (`globals`, `eval`, ...) the whole module
counts. So code that can be reached is not missed; code that only looks reachable counts too.

Not followed are the standard library, installed packages (their versions are recorded with every
run), `advlab.lab`, which stores and schedules what is computed but does not change it, and the
`__init__` files of the packages of advlab that a module merely lies in.
"""

import ast
import hashlib
import inspect
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.machinery import PathFinder
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOT_FOLLOWED = "advlab.lab"
BY_NAME = "advlab.papers."
"""Modules of advlab whose definitions are followed one by one."""

_AT_RUN_TIME = {"globals", "eval", "exec", "vars", "sys.modules", "__import__", "import_module"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_OTHER_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_INSTALLED = [Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib")]

Target = tuple[str, str | None]
"""A module and a name in it; None stands for all of it."""
Import = ast.Import | ast.ImportFrom


def definitions(*sources: object) -> set[str]:
    """The hashes of all statements that functions, classes or modules can reach.

    Args:
        sources: functions, classes, methods, partial functions, modules or other callables;
            "module:name" stands for a definition in a module that need not be imported.

    Returns:
        One line per reached statement: its module, and a hash of its syntax tree without
        docstrings.
    """
    walk = _Walk()
    for source in sources:
        # Someone's own experiment is followed through its package, even if that is installed.
        module = getattr(source, "__module__", None) or getattr(source, "__name__", "")
        module = source.partition(":")[0] if isinstance(source, str) else module
        walk.packages.add(module.partition(".")[0])
    for source in sources:
        walk.start(source)
    return walk.found


def defines(module: str, name: str) -> bool:
    """Does the source of a module define or import a name? The module itself is not imported."""
    found = _module(module)
    return found is not None and name in found.names


@dataclass
class _Walk:
    found: set[str] = field(default_factory=set)
    visited: set[Target] = field(default_factory=set)
    started: list[object] = field(default_factory=list)
    packages: set[str] = field(default_factory=lambda: {"advlab"})
    """Packages that are followed even if they are installed."""

    def start(self, source: Any) -> None:
        """Begin at an object: at its definition, and where that is not all, at what it holds."""
        if any(source is one for one in self.started):
            return
        self.started.append(source)
        if isinstance(source, str):
            name, _, wanted = source.partition(":")
            module = _module(name)
            elsewhere = module.imports.get(wanted) if module else None
            self.follow(elsewhere or [(name, wanted)])
        elif isinstance(source, partial):
            self._held(source.func, *source.args, *source.keywords.values())
        elif isinstance(source, MethodType):
            self._held(source.__func__, type(source.__self__))
        elif isinstance(source, ModuleType):
            self.follow([(source.__name__, None)])
        elif isinstance(source, FunctionType | type):
            self._definition(source)
        else:
            self.start(type(source))

    def _definition(self, source: Any) -> None:
        outer, _, inner = source.__qualname__.partition(".")
        name = source.__module__ or ""
        module = _module(name) if self._followed(name) else None
        known = module is not None and outer in module.definers
        if module is not None:
            self.follow([(name, outer if known else None)])
        elif _path(name):
            self.found.add(f"name {name} {source.__qualname__}")
        elif isinstance(source, FunctionType):
            self.found.add(f"code {_code(source.__code__)}")
        # A function made by another one, such as by a decorator, holds more than its text says.
        if isinstance(source, FunctionType) and ("<locals>" in inner or not known):
            self._held(*inspect.getclosurevars(source).nonlocals.values())
            self._held(*(source.__defaults__ or ()), getattr(source, "__wrapped__", None))

    def _held(self, *values: object) -> None:
        for value in values:
            if isinstance(value, FunctionType | MethodType | ModuleType | partial | type):
                self.start(value)
            elif isinstance(value, bool | int | float | str):
                self.found.add(f"value {value!r}")

    def _followed(self, name: str) -> bool:
        return name.partition(".")[0] in self.packages or not _installed(name)

    def follow(self, targets: Iterable[Target]) -> None:
        waiting = list(targets)
        while waiting:
            name, wanted = waiting.pop()
            if (name, wanted) in self.visited or (name, None) in self.visited:
                continue
            self.visited.add((name, wanted))
            module = _module(name) if self._followed(name) else None
            if module is None:
                continue
            if wanted is not None and wanted not in module.names:
                # Not in the source: a submodule (which has a target of its own), or made in some
                # way that only all of the module can tell.
                waiting += [] if _path(f"{name}.{wanted}") else [(name, None)]
            elif wanted is not None and not module.by_name:
                waiting.append((name, None))
            else:
                hashes, more = module.reach(wanted)
                self.found.update(f"{module.label} {one}" for one in hashes)
                waiting += more


class _Module:
    """A source file: its statements by the names they define, and its imports by theirs."""

    def __init__(self, name: str, path: Path):
        self.name = name
        is_package = path.name == "__init__.py"
        self.package = name if is_package else name.rpartition(".")[0]
        ours = name.partition(".")[0] == "advlab"
        self.by_name = not ours or is_package or name.startswith(BY_NAME)
        # A user's file can be run by its path or imported by its name, with the same results.
        self.label = name if ours else path.stem
        self.definers: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, list[Target]] = {}
        self.always: list[ast.stmt] = []
        self.followed: list[Target] = []  # as soon as anything here is reached
        if not ours and self.package:
            parents = (self.package if not is_package else name.rpartition(".")[0]).split(".")
            self.followed += [(".".join(parents[: n + 1]), None) for n in range(len(parents))]
        for statement in ast.parse(path.read_bytes()).body:
            self._sort(statement)
        self.names = {*self.definers, *self.imports}
        self._described: dict[ast.stmt, _Described] = {}
        self._reached: dict[str | None, tuple[set[str], list[Target]]] = {}
        if not ours:
            # What nobody uses is imported for what it does, such as to register something.
            every = (*self.always, *(one for many in self.definers.values() for one in many))
            used = set().union(*(self._describe(one).uses for one in every))
            self.followed += [
                target for name in self.imports.keys() - used for target in self.imports[name]
            ]

    def _sort(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._bind(statement)
        elif isinstance(statement, ast.If) and _for_types_only(statement.test):
            for inner in (*statement.body, *statement.orelse):
                self._sort(inner)
        elif not _is_text(statement):
            names = _plainly_defined(statement)
            if names is None:
                self.always.append(statement)
                names = _stored(statement)
                for inner in ast.walk(statement):
                    if isinstance(inner, ast.Import | ast.ImportFrom):
                        self._bind(inner)
            for name in names:
                self.definers.setdefault(name, []).append(statement)

    def _bind(self, statement: Import) -> None:
        for bound, target in _targets(statement, self.package):
            if bound == "*":
                self.followed.append(target)
            else:
                self.imports.setdefault(bound, []).append(target)

    def reach(self, wanted: str | None) -> tuple[set[str], list[Target]]:
        """The hashes of the statements here that a name needs, and what they import."""
        if wanted not in self._reached:
            self._reached[wanted] = self._reach(wanted)
        return self._reached[wanted]

    def _reach(self, wanted: str | None) -> tuple[set[str], list[Target]]:
        names = list(self.names) if wanted is None else [wanted]
        used, waiting = set(), [*self.always]
        hashes, targets = set(), [*self.followed]
        while names or waiting:
            while names:
                name = names.pop()
                if name not in used:
                    used.add(name)
                    waiting += self.definers.get(name, [])
                    targets += self.imports.get(name, [])
            if waiting:
                found = self._describe(waiting.pop())
                if found.hash not in hashes:
                    hashes.add(found.hash)
                    targets += found.targets
                    names += self.names if found.uses & _AT_RUN_TIME else found.uses
        return hashes, targets

    def _describe(self, statement: ast.stmt) -> "_Described":
        if statement not in self._described:
            self._described[statement] = _Described(statement, self.package)
        return self._described[statement]


class _Described:
    """A statement's hash, without docstrings and layout; the names it uses; what it imports."""

    def __init__(self, statement: ast.stmt, package: str):
        self.uses: set[str] = set()
        self.targets: list[Target] = []
        parts: list[str] = []
        # A node (or a piece of text), the variables of the functions around it, and whether it
        # belongs to an annotation. One loop, since it runs over every node of every file.
        waiting: list[tuple[Any, frozenset[str], bool]] = [(statement, frozenset(), False)]
        while waiting:
            node, hidden, annotation = waiting.pop()
            if isinstance(node, str):
                parts.append(node)
                continue
            parts.append(type(node).__name__)
            inside = hidden
            if isinstance(node, ast.Name) and node.id not in hidden:
                self.uses.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and annotation:
                self.uses.update(re.findall(r"\w+", node.value))  # a type in quotes
            elif isinstance(node, ast.Attribute):
                whole = f"{getattr(node.value, 'id', '')}.{node.attr}"
                self.uses.update({node.attr, whole} & _AT_RUN_TIME)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self.targets += [target for _, target in _targets(node, package)]
            elif isinstance(node, _FUNCTIONS):
                inside = hidden | _variables(node)
            children: list[tuple[Any, frozenset[str], bool]] = []
            for name in node._fields:
                value = getattr(node, name, None)
                scope = inside if name == "body" else hidden
                types = annotation or name in ("annotation", "returns")
                for one in ("[", *value, "]") if isinstance(value, list) else (value,):
                    if not (isinstance(one, ast.Expr) and _is_text(one)):
                        piece = one if isinstance(one, ast.AST) else repr(one)
                        children.append((piece, scope, types))
            waiting += reversed(children)
        self.hash = hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _variables(function: "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda") -> set[str]:
    """The arguments of a function and the names that it gives a value itself."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    names, others = {one.arg for one in every if one is not None}, set()
    waiting: list[ast.AST] = [*function.body] if isinstance(function.body, list) else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Global):
            others.update(node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif not isinstance(node, _OTHER_SCOPES):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            waiting += ast.iter_child_nodes(node)
    return names - others


def _is_text(node: ast.AST) -> bool:
    """A docstring, or another text that stands by itself."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _for_types_only(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _plainly_defined(statement: ast.stmt) -> set[str] | None:
    """The names that a function or an assignment defines; None for what may act by itself."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return None if statement.decorator_list else {statement.name}
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return None
    plain = all(isinstance(part, ast.Name | ast.Tuple | ast.List) for part in targets)
    return _stored(*targets) if plain else None


def _stored(*nodes: ast.AST) -> set[str]:
    """Every name that is given a value there, outside of functions and classes."""
    names, waiting = set(), list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        else:
            waiting += ast.iter_child_nodes(node)
    return names


def _targets(statement: Import, package: str) -> Iterator[tuple[str, Target]]:
    """The names that an import binds, and what they stand for."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0], (alias.name, None)
            if alias.asname is None and "." in alias.name:
                top = alias.name.partition(".")[0]
                yield top, (top, None)
        return
    base = statement.module or ""
    if statement.level:
        parts = package.split(".")
        parts = parts[: len(parts) - statement.level + 1]
        base = ".".join([*parts, base] if base else parts)
    for alias in statement.names:
        bound = alias.asname or alias.name
        yield bound, (base, None if alias.name == "*" else alias.name)
        if _path(f"{base}.{alias.name}"):
            yield bound, (f"{base}.{alias.name}", None)


@cache
def _module(name: str) -> _Module | None:
    """The module of a name; None where there is no source to read or it is not to be followed."""
    if name == NOT_FOLLOWED or name.startswith(f"{NOT_FOLLOWED}."):
        return None
    path = _path(name)
    if path is None or path.suffix != ".py":
        return None
    try:
        return _Module(name, path)
    except (OSError, SyntaxError, ValueError):
        return None


@cache
def _path(name: str) -> Path | None:
    """The file of a module, found without importing anything."""
    top, _, rest = name.partition(".")
    if top == "advlab":
        place = ROOT.joinpath(*rest.split(".")) if rest else ROOT
        found = (place / "__init__.py", place.with_suffix(".py"))
        return next((path for path in found if path.is_file()), None)
    if not all(name.split(".")):
        return None
    loaded = getattr(sys.modules.get(name), "__file__", None)
    if loaded:
        return Path(loaded).resolve()
    above = name.rpartition(".")[0]
    try:
        spec = PathFinder.find_spec(name, _folders(above) if above else None)
    except (ImportError, ValueError, AttributeError):
        return None
    return Path(spec.origin).resolve() if spec and spec.has_location and spec.origin else None


def _folders(package: str) -> list[str]:
    """Where the modules of a package lie."""
    loaded = getattr(sys.modules.get(package), "__path__", None)
    if loaded is not None:
        return list(loaded)
    path = _path(package)
    return [str(path.parent)] if path and path.name == "__init__.py" else []


@cache
def _installed(name: str) -> bool:
    """Does a module belong to an installed package or to Python itself?"""
    path = _path(name)
    if path is None:
        return True
    parts = {"site-packages", "dist-packages"} & set(path.parts)
    return bool(parts) or any(path.is_relative_to(place) for place in _INSTALLED)


def _code(code: CodeType) -> str:
    """A hash of compiled code, for functions without a source file."""
    found = hashlib.sha256(code.co_code + repr(code.co_names).encode())
    for value in code.co_consts:
        found.update((_code(value) if isinstance(value, CodeType) else repr(value)).encode())
    return found.hexdigest()
