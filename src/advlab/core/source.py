"""What a running function does, as a hash: of its source without comments, docstrings and layout.

The text of a file counts only if it compiles to the code that runs: a file may have changed since
it was imported, and some code has no file. There the compiled code itself is hashed.
"""

import ast
import dis
import hashlib
import linecache
import sys
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .reachable import _Described, _installed, _path

_HAS_DOCSTRING = 0x4000000
_LOOKED_UP = ("LOAD_GLOBAL", "LOAD_NAME")
_Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@cache
def own(module: str) -> bool:
    """Is a module advlab's or the user's, and not of Python or an installed package?

    Args:
        module: its name, such as "torch.nn"; one without a file, as in a notebook, is the user's.
    """
    top = module.partition(".")[0]
    if top in ("advlab", "__main__"):
        return True
    if not top or top in sys.stdlib_module_names or top.startswith("namedtuple_"):
        return False
    known = next((name for name in (module, top) if _path(name)), None)
    return known is None or not _installed(known)


def code_hash(code: CodeType) -> str:
    """The hash of a function's code, the same in every process.

    Args:
        code: `function.__code__`.

    Returns:
        64 hexadecimal digits.
    """
    return _code_hash(code, code.co_filename)


@cache
def _code_hash(code: CodeType, path: str) -> str:
    # The path counts: the same code in another file may have another decorator.
    place = code.co_firstlineno, code.co_name
    node, compiled = _definitions(_text(path)).get(place, (None, None))
    if node is not None and compiled == code:
        return _Described(ast.Expr(node) if isinstance(node, ast.Lambda) else node, "").hash
    return _compiled_hash(code)


def looked_up(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function and those inside it look up by name, and what they find.

    Args:
        function: one that is written in Python.

    Returns:
        Names and values: among its globals, in the modules of the user or of advlab that it names,
        and in those that it imports when it runs.
    """
    variables, every = _names(function.__code__)
    space = function.__globals__
    package = space.get("__package__") or ""
    found = {name: space[name] for name in sorted(variables) if name in space}
    modules = [value for value in found.values() if isinstance(value, ModuleType)]
    for name in sorted(every):
        late = sys.modules.get(name), sys.modules.get(f"{package}.{name}")
        modules += [one for one in late if isinstance(one, ModuleType)]
    yield from ((n, value) for n, value in found.items() if not isinstance(value, ModuleType))
    seen = set()
    while modules:
        module = modules.pop()
        if module.__name__ in seen or not own(module.__name__):
            continue
        seen.add(module.__name__)
        for name in sorted(every & vars(module).keys()):
            value = vars(module)[name]
            if isinstance(value, ModuleType):
                modules.append(value)
            else:
                yield name, value


@cache
def _names(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The global names of a function and of those inside it; and these with all attributes."""
    variables = {
        str(one.argval) for one in dis.get_instructions(code) if one.opname in _LOOKED_UP
    }  # fmt: skip
    every = set(code.co_names)
    for value in code.co_consts:
        if isinstance(value, CodeType):
            more, all_more = _names(value)
            variables |= more
            every |= all_more
    return frozenset(variables), frozenset(every)


@cache
def _definitions(text: str) -> dict[tuple[int, str], tuple[_Node, CodeType]]:
    """The functions of a file by first line and name, where these tell which one it is."""
    try:
        tree = ast.parse(text)
        waiting: list[Any] = [compile(tree, "", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError):
        return {}
    nodes: dict[tuple[int, str], list[_Node]] = {}
    for node in ast.walk(tree):
        if isinstance(node, _Node):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            nodes.setdefault((first, getattr(node, "name", "<lambda>")), []).append(node)
    codes: dict[tuple[int, str], list[CodeType]] = {}
    while waiting:
        code = waiting.pop()
        codes.setdefault((code.co_firstlineno, code.co_name), []).append(code)
        waiting += [value for value in code.co_consts if isinstance(value, CodeType)]
    return {
        place: (found[0], codes[place][0])
        for place, found in nodes.items()
        if len(found) == len(codes.get(place, ())) == 1
    }


def _text(path: str) -> str:
    linecache.checkcache(path)
    return "".join(linecache.getlines(path))


def _compiled_hash(code: CodeType) -> str:
    given = code.co_argcount + code.co_kwonlyargcount
    found = hashlib.sha256(code.co_code)
    found.update(repr((code.co_names, code.co_varnames[:given], code.co_freevars)).encode())
    constants = list(code.co_consts)
    if constants and isinstance(constants[0], str) and _has_docstring(code):
        constants[0] = None
    for value in constants:
        text = _compiled_hash(value) if isinstance(value, CodeType) else _plain(value)
        found.update(text.encode())
    return found.hexdigest()


def _has_docstring(code: CodeType) -> bool:
    if sys.version_info >= (3, 13):
        return bool(code.co_flags & _HAS_DOCSTRING)
    return not code.co_name.startswith("<")


def _plain(value: object) -> str:
    # The order of a set differs from process to process.
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
