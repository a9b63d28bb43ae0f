"""Recipes by name, from TOML files, and with some of their settings changed."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from ...attacks import ATTACKS, Attack
from ...core.config import Config
from ...core.errors import AdvlabError
from ...core.inputs import Given
from .base import Recipe

WORD = re.compile(r"[A-Za-z_][\w.]*")


def recipe(which: Given[str | Path | Recipe], **settings: Any) -> Recipe:
    """A recipe with a paper's defaults, and with what is set otherwise.

    Args:
        which: a name of `RECIPES`, a TOML file, or a recipe. A file names its recipe,
            `recipe = "trades"`; its other keys are settings, those of the attack in `[attack]`.
        settings: fields by name; `attack` may be an attack, its name, or a dict of what changes.

    Example:
        from advlab.threats import Ball
        from advlab.training import recipe
        recipe("trades", beta=3.0, attack={"steps": 7}).stages(Ball("linf", 0.1), 391)
        recipe("mine.toml", epochs=30)
    """
    if isinstance(which, Recipe):
        return changed(which, settings)
    if not isinstance(which, str | Path):
        raise AdvlabError("a recipe, its name or a TOML file", f"{which!r:.60}")
    if isinstance(which, Path) or which.endswith(".toml"):
        return changed(from_toml(Path(which)), settings)
    return changed(_named(which), settings)


def with_settings(which: Recipe, settings: Iterable[str]) -> Recipe:
    """A recipe with settings as a command line gives them.

    Args:
        which: the recipe.
        settings: "key=value" each; the value is written as in TOML, words need no quotes, `none`
            stands for no value, and a dot leads inside: "attack.steps=7".

    Example:
        from advlab.training import recipe, with_settings
        with_settings(recipe("trades"), ["beta=3", "attack.steps=7", "schedule=cosine"])
    """
    table: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        *path, last = key.strip().split(".")
        if not equals or not all((*path, last)):
            raise AdvlabError("settings as key=value", repr(setting), "for example lr=0.05")
        inside = table
        for part in path:
            # An attack by its name, and then one of its settings: both hold.
            deeper = inside.get(part, {})
            inside[part] = deeper if isinstance(deeper, dict) else {"name": deeper}
            inside = inside[part]
        inside[last] = _value(key.strip(), text.strip())
    return changed(which, table)


def from_toml(path: Path) -> Recipe:
    """The recipe of a TOML file.

    Args:
        path: a file with `recipe = "name"` and settings.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AdvlabError(f"{path} must be a file", error.strerror or error) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AdvlabError(f"{path} must be TOML", error) from None
    return from_table(found, str(path))


def from_table(table: Mapping[str, Any], place: str = "the table") -> Recipe:
    """The recipe of a table, as TOML and `as_table` have it.

    Args:
        table: `recipe` is the name, all other keys are settings.
        place: where it stands, for errors.
    """
    settings = dict(table)
    name = settings.pop("recipe", None)
    if not isinstance(name, str):
        raise AdvlabError(f'recipe = "name" in {place}', "none" if name is None else repr(name))
    return changed(_named(name), settings)


def as_table(which: Recipe) -> dict[str, Any]:
    """All settings of a recipe as plain numbers and words, from which `from_table` makes it again.

    Args:
        which: a recipe whose attack is one of `ATTACKS`.

    Example:
        from advlab.training import recipe
        from advlab.training.recipes import as_table, from_table
        from_table(as_table(recipe("trades", beta=3.0))) == recipe("trades", beta=3.0)
    """
    table: dict[str, Any] = {"recipe": which.name}
    for field, value in which:
        table[field] = value
        if isinstance(value, Attack):
            names = [name for name in ATTACKS.names() if ATTACKS[name] is type(value)]
            if not names:
                raise AdvlabError(f"an attack: {', '.join(ATTACKS.names())}", type(value).__name__)
            table[field] = {"name": names[0], **value.model_dump(mode="json")}
        elif isinstance(value, tuple):
            table[field] = list(value)
    return table


def changed(which: Recipe, settings: Mapping[str, Any]) -> Recipe:
    """The recipe with some settings changed; tables change what they name inside.

    Args:
        which: the recipe.
        settings: values by field.
    """
    fields = _merged(f"the recipe {which.name}", which, settings)
    return type(which)(**fields) if settings else which


def _named(name: str) -> Recipe:
    from . import RECIPES

    if name not in RECIPES:
        raise AdvlabError(
            f"a recipe: {', '.join(RECIPES.names())}", repr(name), _hint(name, RECIPES.names())
        )
    return RECIPES[name]()  # type: ignore[call-arg]


def _merged(owner: str, config: Config, settings: Mapping[str, Any]) -> dict[str, Any]:
    """All fields of the config, with the settings in place of the former values."""
    known = type(config).model_fields
    fields = {name: getattr(config, name) for name in known}
    for name, value in settings.items():
        if name not in known:
            hint = _hint(name, known) or f"it has {', '.join(known)}"
            raise AdvlabError(f"a setting of {owner}", repr(name), hint)
        before = fields[name]
        if isinstance(before, Attack):
            value = _attack(f"{name} of {owner}", before, value)
        elif isinstance(value, Mapping):
            raise AdvlabError(f"{name} of {owner} as one value", f"{dict(value)!r:.60}")
        if isinstance(value, list):
            value = tuple(value)
        if value == "none" and NoneType in get_args(known[name].annotation):
            value = None
        fields[name] = value
    return fields


def _attack(owner: str, before: Attack, value: Any) -> Any:
    """An attack as it is, by its name, or the former one (or a named one) with other settings."""
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping):
        return value
    inside = dict(value)
    name = inside.pop("name", None)
    if name is not None:
        if name not in ATTACKS:
            raise AdvlabError(
                f"an attack: {', '.join(ATTACKS.names())}", repr(name), _hint(str(name), ATTACKS)
            )
        before = before if type(before) is ATTACKS[name] else ATTACKS[name]()
    for key, new in inside.items():
        number = isinstance(getattr(before, key, None), int | float)
        if number and isinstance(new, str):  # which pydantic would read
            raise AdvlabError(f"{key} of {owner} as a number", repr(new))
    return type(before)(**_merged(owner, before, inside))


def _value(key: str, text: str) -> Any:
    """A value as TOML writes it; a bare word is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        if WORD.fullmatch(text):
            return text
        raise AdvlabError(
            f"a value for {key} as TOML writes it", repr(text), "for example 0.1, true, [0.5, 0.75]"
        ) from None


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}" if near else ""
