"""The `Example:` section of a docstring as a block of code (an extension of griffe).

Our docstrings have bare code there, which Markdown would read as a paragraph, and `>>>` as a quote.
"""

import re
import textwrap
from typing import Any

from griffe import Extension, Object

_SECTION = re.compile(r"^Example:\n((?: +\S.*(?:\n|\Z)| *\n)+)", re.MULTILINE)
_PROMPT = re.compile(r"^(?:>>>|\.\.\.) ?", re.MULTILINE)


def fenced(docstring: str) -> str:
    """A docstring with its examples between fences.

    Args:
        docstring: without the indentation of its function.
    """
    return _SECTION.sub(_block, docstring).rstrip()


def _block(found: re.Match[str]) -> str:
    code, language = textwrap.dedent(found[1]).strip(), "python"
    if all(_PROMPT.match(line) for line in code.splitlines()):  # what can be copied as it is
        code = _PROMPT.sub("", code)
    elif code.startswith(">>>"):
        language = "pycon"
    block = textwrap.indent(f"```{language}\n{code}\n```", "    ")
    return f"Example:\n{block}\n\n"


class Examples(Extension):
    """Examples of everything that is documented."""

    def on_instance(self, *, obj: Object, **kwargs: Any) -> None:
        """Before anyone parses its docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
