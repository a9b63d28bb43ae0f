"""The frozen, strict base of everything that can be configured."""

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from .errors import AdvlabError


class Config(BaseModel):
    """Settings: frozen, typed, finite, and strict about unknown names; equal ones have equal keys.

    A subclass declares its settings as annotated fields, as in pydantic. What does not fit raises
    an `AdvlabError` of one line.

    Example:
        from advlab.core.config import Config

        class Step(Config):
            size: float = 0.1
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, *unnamed: Any, **data: Any):
        if unnamed:
            name = type(self).__name__
            raise AdvlabError(f"{name}: settings by name", f"{unnamed[0]!r:.60} without one")
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise AdvlabError(_one_line(type(self).__name__, error)) from None

    def canonical(self) -> str:
        """The same text for the same settings, whatever order they were written in."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    def key(self) -> str:
        """A short name that changes when, and only when, the settings do."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:16]


class ExactConfig(Config):
    """Settings that are as exact as they look: True is no number, and 2.0 is no count."""

    @field_validator("*", mode="before")
    @classmethod
    def _exact(cls, value: Any, info: Any) -> Any:
        kind = cls.model_fields[str(info.field_name)].annotation
        inside = value if isinstance(value, tuple | list) and kind is not bool else (value,)
        if kind is not bool and any(isinstance(one, bool) for one in inside):
            raise AdvlabError("must be a number, not a boolean")
        if kind is int and isinstance(value, float):
            raise AdvlabError("must be a whole number")
        return value


def _one_line(name: str, error: ValidationError) -> str:
    problems = []
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"]) or "value"
        if problem["type"] == "extra_forbidden":
            problems.append(f"{place}: unknown setting")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            came = problem.get("input")
            shown = repr(came) if not isinstance(came, dict | BaseModel) else "these settings"
            problems.append(f"{place}: {message[:1].lower()}{message[1:]}, got {shown:.80}")
    return f"{name}: " + "; ".join(problems)
