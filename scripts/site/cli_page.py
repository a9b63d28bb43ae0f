"""The reference of the command line, from the commands themselves."""

import inspect
import re
from collections.abc import Iterator
from textwrap import dedent, indent
from typing import Any

from advlab.cli import VERBS, _imported

_CODE = re.compile(r"(`[^`]*`)")
_PAGE = re.compile(r"\bdocs/([\w-]+\.md)")
_OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*|\$[A-Z_]+)")


def page() -> str:
    """The Markdown of the page."""
    lines = ["# The command line", "", "| command | what it does |", "|---|---|"]
    lines += [
        f"| [`advlab {verb}`](#advlab-{verb}) | {words} |" for verb, (_, words) in VERBS.items()
    ]
    lines += [
        "",
        "A mistake in the call is told in one line, with exit code 2. "
        "`advlab --install-completion` sets up completion.",
        "",
    ]
    for verb in VERBS:
        lines += _command(f"advlab {verb}", _imported(verb))
    return "\n".join(lines) + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    yield from ("", f"## {name}" if name.count(" ") == 1 else f"### {name}", "")
    if inner:
        yield from _words(command.help or "")
        for verb, one in inner.items():
            yield from _command(f"{name} {verb}", one)
        return
    given = [one for one in command.params if one.name != "help"]
    named = [one for one in given if one.param_type_name == "option"]
    placed = [one for one in given if one.param_type_name == "argument"]
    usage = " ".join(f"[{_place(one)}]" if not one.required else _place(one) for one in placed)
    yield from (f"    {name} [OPTIONS] {usage}".rstrip(), "")
    yield from _words(command.help or "")
    rows = [(f"`{_place(one)}`", one) for one in placed]
    rows += [(_flags(one, command), one) for one in named]
    kept = any(_default(one) for one in given)
    if given:
        yield "| argument or option | what it is |" + " if left out |" * kept
        yield "|---|---|" + "---|" * kept
    for name, one in rows:
        yield f"| {name} | {_cell(one.help)} |" + f" {_default(one)} |" * kept


def _flags(option: Any, command: Any) -> str:
    flags = ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
    return flags if option.is_flag else f"{flags} {_type(option, command)}"


def _words(text: str) -> Iterator[str]:
    for part in inspect.cleandoc(text).split("\n\n"):
        body = part.removeprefix("\b").strip("\n")
        if part.startswith("\b"):
            yield from indent(dedent(body), "    ").splitlines()
        else:
            yield _coded(" ".join(body.split()))
        yield ""


def _place(argument: Any) -> str:
    name = argument.metavar or (argument.name or "").upper()
    return name + ("..." if argument.nargs == -1 and not name.endswith("...") else "")


def _type(option: Any, command: Any) -> str:
    text = option.display_type(command.make_context("", [], resilient_parsing=True)).strip("<>")
    least, most = (getattr(option, name, None) for name in ("min", "max"))
    if least is None and most is None:
        return f"*{text.replace('|', ' or ')}*"
    ends = [f"at least {least}"] if least is not None else []
    ends += [f"at most {most}"] if most is not None else []
    return f"*{text.removesuffix(' range')}, {' and '.join(ends)}*"


def _default(one: Any) -> str:
    value = one.default
    if value is None or value is False or value == [] or value == () or callable(value):
        return "required" if one.required else ""
    return f"`{value}`"


def _cell(text: str | None) -> str:
    return _coded(re.sub(r"\s+", " ", text or "").replace("|", "\\|"))


def _coded(text: str) -> str:
    """Options and variables in a sentence as code, pages as links; what is code already stays."""
    return "".join(
        part if place % 2 else _PAGE.sub(r"[docs/\1](\1)", _OPTION.sub(r"`\1`", part))
        for place, part in enumerate(_CODE.split(text))
    )
