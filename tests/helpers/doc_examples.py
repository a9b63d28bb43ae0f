"""The examples of docstrings: found in the source, and run with what a reader would have.

An example imports what it uses of advlab. What it takes from its reader (x, y, a model, a loss)
stands in `COMMON`, or in `SETUPS` for the file where it is something else.
"""

import ast
import doctest
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from example_setups import COMMON, SETUPS, SHORTER

PACKAGE = Path(__file__).parents[2] / "src" / "advlab"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
_SECTION = re.compile(r"^Example:\n((?: +\S.*(?:\n|\Z)| *\n)+)", re.MULTILINE)
_PROMPT = re.compile(r"^(?:>>>|\.\.\.) ?", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """The example of a docstring.

    Args:
        file: below the package.
        name: the class or function, or nothing for the module's own.
        code: as it stands there, with prompts if it has them.
    """

    file: str
    name: str
    code: str

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"

    @property
    def plain(self) -> str:
        """Without prompts, and without what is printed."""
        if not self.code.startswith(">>>"):
            return self.code
        lines = [line for line in self.code.splitlines() if _PROMPT.match(line)]
        return _PROMPT.sub("", "\n".join(lines))

    @property
    def prints(self) -> bool:
        """Whether it shows what is printed."""
        lines = self.code.splitlines()
        return lines[0].startswith(">>>") and not all(map(_PROMPT.match, lines))


def examples() -> Iterator[Example]:
    """All of them, file by file."""
    for file in sorted(PACKAGE.rglob("*.py")):
        where = file.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            for found in _SECTION.findall(text or ""):
                name = "" if isinstance(node, ast.Module) else getattr(node, "name", "")
                yield Example(where, name, textwrap.dedent(found).strip())


def _imported(name: str, value: object) -> bool:
    """Whether a setup imported it for itself: the example says where it has it from."""
    ours = str(getattr(value, "__module__", "")).startswith("advlab")
    return isinstance(value, ModuleType) or (ours and getattr(value, "__name__", "") == name)


def run(example: Example, **more: Any) -> None:
    """Run an example where its reader would stand; what it shows to be printed is compared.

    Args:
        example: from `examples`.
        more: names that it may use beside those of its setup.

    Raises:
        Exception: whatever it raises.
        AssertionError: it prints something else.
    """
    names: dict[str, Any] = {"__name__": "example", **more}
    exec(compile(COMMON, "example_setups.py", "exec"), names)
    setup = SETUPS.get(str(example), SETUPS.get(example.file, ""))
    exec(compile(setup, f"setup of {example}", "exec"), names)
    names = {name: value for name, value in names.items() if not _imported(name, value)}
    if example.prints:
        test = doctest.DocTestParser().get_doctest(example.code, names, str(example), None, None)
        found = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
        assert found.failed == 0, f"{example} prints something else"
        return
    code = example.plain
    for long, short in SHORTER.get(str(example), {}).items():
        assert long in code, f"{example}: no {long} to be shortened"
        code = code.replace(long, short)
    exec(compile(code, str(example), "exec"), names)
