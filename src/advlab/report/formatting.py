"""Numbers, times and settings as a reader wants to see them."""

import json
from collections.abc import Mapping

from .verdict import Assumption, Verdict

_MANY = 4
"""Sizes beyond so many are told by their ends."""
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """Four significant digits, powers of ten raised, and a true minus sign."""
    if value is None:
        return "not measured"
    digits, _, power = f"{value:.4g}".partition("e")
    digits = digits.replace("-", "−")
    return f"{digits} × 10{str(int(power)).translate(RAISED)}" if power else digits


def interval(low: float | None, high: float | None) -> str:
    """From where to where; empty if there is none, or it is a point."""
    if low is None or high is None or low == high:
        return ""
    return f"{number(low)} to {number(high)}"


def scope(verdict: Verdict) -> str:
    """The parts of a scope in a line."""
    return "; ".join(scope_parts(verdict))


def scope_parts(verdict: Verdict) -> list[str]:
    """Assumptions and what was reached of them, what was reduced, and earlier looks."""
    found = verdict.scope
    parts = [assumption(one) for one in found.assumptions]
    if found.reduced:
        parts.append(f"reduced: {found.reduced}")
    if found.looks:
        parts.append(f"{plural(found.looks, 'earlier look')}, on other seeds")
    return parts


def sizes(verdict: Verdict) -> str:
    """The settings of the runs and how many seeds there were, in a line."""
    found = verdict.scope.sizes.items()
    return ", ".join(f"{name.replace('_', ' ')} {_size(value)}" for name, value in found)


def _size(value: object) -> str:
    """Of many numbers how many, and their ends."""
    values = value if isinstance(value, list) else [value]
    numbers = [one for one in values if isinstance(one, int | float)]
    if len(numbers) == len(values) > _MANY:
        return f"{number(min(numbers))} to {number(max(numbers))} ({len(numbers)} values)"
    return " / ".join(number(one) if isinstance(one, float) else str(one) for one in values)


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
