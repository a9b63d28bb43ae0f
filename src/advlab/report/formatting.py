"""Numbers, times, settings and docstrings as a reader wants to see them."""

import inspect
import json
import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from .verdict import Assumption, Verdict

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """Four significant digits, powers of ten raised, and a true minus sign."""
    if value is None:
        return "not measured"
    digits, _, power = f"{value:.4g}".partition("e")
    digits = digits.replace("-", "−")
    return f"{digits} × 10{str(int(power)).translate(_RAISED)}" if power else digits


def interval(verdict: Verdict) -> str:
    if verdict.low is None or verdict.high is None:
        return "none"
    if verdict.low == verdict.high:
        return "a point"
    return f"{number(verdict.low)} to {number(verdict.high)}"


def scope(verdict: Verdict) -> str:
    """Assumptions and what was reached of them, what was reduced, and earlier looks.

    Sizes stand with the settings of the experiment.
    """
    found = verdict.scope
    parts = [assumption(one) for one in found.assumptions]
    if found.reduced:
        parts.append(f"reduced: {found.reduced}")
    if found.looks:
        parts.append(f"{plural(found.looks, 'earlier look')}, on other seeds")
    return "; ".join(parts)


def shared_scope(verdicts: Sequence[Verdict]) -> str:
    """The scope that most verdicts of an experiment have, to be shown once."""
    words = [scope(verdict) for verdict in verdicts]
    return max(dict.fromkeys(words), key=words.count, default="")


def assumption(one: Assumption) -> str:
    """What is needed, what was reached, and whether that is enough."""
    reached = "" if one.reached is None else f", reached {number(one.reached)}"
    met = {True: "met", False: "not met", None: "unknown"}[one.holds]
    return f"{one.name} ({one.condition}{reached}): {met}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def setting(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def settings(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {setting(value)}" for name, value in values.items())


def prose(text: str) -> Markup:
    """A docstring as paragraphs, lists and indented formulas; `marks` become code."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(text).strip())
    return Markup("\n").join(_block(block) for block in blocks if block.strip())


def _block(block: str) -> Markup:
    lines = block.splitlines()
    if all(line.startswith("  ") for line in lines):
        return Markup("<pre>{}</pre>").format(inspect.cleandoc("\n" + block))
    if lines[0].startswith(("- ", "* ")):
        items = re.split(r"^[-*] ", block, flags=re.MULTILINE)[1:]
        rows = Markup("").join(Markup("<li>{}</li>").format(_inline(item)) for item in items)
        return Markup("<ul>{}</ul>").format(rows)
    return Markup("<p>{}</p>").format(_inline(block))


def _inline(text: str) -> Markup:
    flowing = str(escape(" ".join(text.split())))
    return Markup(re.sub(r"`+([^`]+)`+", r"<code>\1</code>", flowing))
