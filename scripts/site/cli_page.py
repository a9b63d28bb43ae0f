"""The reference of the command line, from the commands themselves."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from advlab.cli import VERBS, _imported


def page() -> str:
    """The Markdown of the page."""
    lines = ["# The command line", "", "| command | |", "|---|---|"]
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
    if given:
        yield from ("| | | if left out |", "|---|---|---|")
        for one in placed:
            yield f"| `{_place(one)}` | {_cell(one.help)} | {_default(one)} |"
        for one in named:
            flags = ", ".join(f"`{flag}`" for flag in (*one.opts, *one.secondary_opts))
            kind = "" if one.is_flag else f" {_type(one, command)}"
            yield f"| {flags}{kind} | {_cell(one.help)} | {_default(one)} |"


def _words(text: str) -> Iterator[str]:
    for part in inspect.cleandoc(text).split("\n\n"):
        body = part.removeprefix("\b").strip("\n")
        if part.startswith("\b"):
            yield from (f"    {line.strip()}" for line in body.splitlines())
        else:
            yield " ".join(body.split())
        yield ""


def _place(argument: Any) -> str:
    name = argument.metavar or (argument.name or "").upper()
    return name + ("..." if argument.nargs == -1 and not name.endswith("...") else "")


def _type(option: Any, command: Any) -> str:
    text = option.display_type(command.make_context("", [], resilient_parsing=True))
    return f"*{text.strip('<>').replace('|', ' or ')}*"


def _default(one: Any) -> str:
    value = one.default
    if value is None or value is False or value == [] or value == () or callable(value):
        return "required" if one.required else ""
    return f"`{value}`"


def _cell(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").replace("|", "\\|")
