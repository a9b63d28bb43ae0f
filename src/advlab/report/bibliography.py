"""The papers that results belong to: what they are called, who wrote them, and their story."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ..core.config import Config
from ..core.errors import AdvlabError
from .theme import CATEGORIES


class Paper(Config):
    """A paper.

    Args:
        title: as printed.
        authors: as printed, in order.
        venue: where and when it appeared.
        url: where it can be read.
        label: a word or two for menus, if its short name is not a word.
        story: one paragraph: the question, the answer, and how the experiments follow it.
        experiments: names of its experiments in the order of the story.
        colours: places among the colours (`theme.CATEGORIES`, from 0) of what several of its
            figures show, so that each has one colour in all of them.
    """

    title: str
    authors: tuple[str, ...] = ()
    venue: str = ""
    url: str = Field(default="", pattern=r"^(https://.*)?$")
    label: str = ""
    story: str = ""
    experiments: tuple[str, ...] = ()
    colours: Mapping[str, Annotated[int, Field(ge=0, lt=len(CATEGORIES))]] = {}

    @property
    def by(self) -> str:
        """The authors as a sentence has them."""
        return joined(self.authors)


def joined(names: Sequence[str]) -> str:
    """ "A, B and C"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def load(path: Path, experiments: dict[str, tuple[str, ...]] | None = None) -> dict[str, Paper]:
    """Papers by their short names.

    Args:
        path: a TOML file with a table per paper; one that is not there holds none.
        experiments: of each paper, the names of its experiments in the order of its story.
    """
    if not path.exists():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AdvlabError(f"{path} must be TOML", error) from None
    order = experiments or {}
    return {
        name: Paper(**{**entry, "experiments": order.get(name, ())})
        for name, entry in tables.items()
    }
