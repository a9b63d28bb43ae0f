"""The settings of a `Config` as parameters, with types and defaults (an extension of griffe).

Such a class has no `__init__` of its own to be read; pydantic makes it from the fields, those of
the classes above included.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from griffe import Class, Extension, Function, Parameter, ParameterKind, Parameters
from pydantic import BaseModel

_WRAPPED = re.compile(r"\bSerializeAsAny\[([^\[\]]+)\]")


class Settings(Extension):
    """Settings of everything that is documented."""

    def on_class_members(self, *, cls: Class, **kwargs: Any) -> None:
        """Before anyone parses its docstring."""
        kind = _imported(cls) if cls.bases and "__init__" not in cls.members else None
        if kind is not None and issubclass(kind, BaseModel):
            settings = Parameters(Parameter("self"), *parameters(kind))
            cls.set_member("__init__", Function("__init__", parameters=settings))


def parameters(kind: type[BaseModel]) -> Iterator[Parameter]:
    """Each field with its annotation as it is typed, and its default.

    Args:
        kind: a class of settings.
    """
    typed: dict[str, ast.AnnAssign] = {}
    for above in reversed(kind.__mro__):
        if above is not BaseModel and issubclass(above, BaseModel):
            typed |= _fields(above)
    for name, field in kind.model_fields.items():
        if name not in typed:
            continue
        annotation = _WRAPPED.sub(r"\1", ast.unparse(typed[name].annotation))
        value = typed[name].value
        default = None
        if not field.is_required():
            plain = value is not None and not ast.unparse(value).startswith("Field(")
            default = ast.unparse(value) if plain else repr(field.get_default(
                call_default_factory=True))  # fmt: skip
        yield Parameter(
            name, annotation=annotation, kind=ParameterKind.keyword_only, default=default
        )


@cache
def _fields(kind: type) -> dict[str, ast.AnnAssign]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    return {
        one.target.id: one
        for body in tree.body
        if isinstance(body, ast.ClassDef)
        for one in body.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }


def _imported(cls: Class) -> type | None:
    """The class itself; None for one inside a function, which nobody can import."""
    found = getattr(import_module(cls.module.path), cls.name, None)
    return found if isinstance(found, type) else None
