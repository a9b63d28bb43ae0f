"""Numbers, times and settings as a reader wants to see them."""

import json
from collections.abc import Mapping, Sequence

from .verdict import Assumption, Verdict

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """Four significant digits, powers of ten raised, and a true minus sign."""
    if value is None:
        return "not measured"
    digits, _, power = f"{value:.4g}".partition("e")
    digits = digits.replace("-", "−")
    return f"{digits} × 10{str(int(power)).translate(_RAISED)}" if power else digits


def interval(low: float | None, high: float | None) -> str:
    """From where to where; empty if there is none, or it is a point."""
    if low is None or high is None or low == high:
        return ""
    return f"{number(low)} to {number(high)}"


def scope(verdict: Verdict) -> str:
    """The parts of a scope in a line."""
    return "; ".join(scope_parts(verdict))


def scope_parts(verdict: Verdict) -> list[str]:
    """Assumptions and what was reached of them, what was reduced, and earlier looks.

    Sizes stand with the settings of the experiment.
    """
    found = verdict.scope
    parts = [assumption(one) for one in found.assumptions]
    if found.reduced:
        parts.append(f"reduced: {found.reduced}")
    if found.looks:
        parts.append(f"{plural(found.looks, 'earlier look')}, on other seeds")
    return parts


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
