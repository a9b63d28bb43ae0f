"""The pictures of the home page: one or two panels each, all of one shape.

In docs/index.md a comment behind a picture says which panels: `![...](images/x.png)<!-- 2, 3 -->`.
"""

import re

import pictures as stored
from addresses import ROOT

TILE = (1.75, 960)
"""Width over height of a tile, and its width in pixels."""
_CHOSEN = re.compile(r"(!\[[^\]]*\])\((images/([\w-]+)\.png)\)<!-- ([\d, ]+|all) -->")


def with_tiles(page: str) -> str:
    """The page with its pictures replaced by their tiles."""
    return _CHOSEN.sub(r"\1(images/home/\3.png)", page)


def pictures() -> dict[str, bytes]:
    """The tiles, by their place on the site.

    Raises:
        NoPanel: a picture has not the panel that is chosen.
    """
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    made = {}
    for _, file, name, chosen in _CHOSEN.findall(page):
        numbers = () if chosen == "all" else tuple(map(int, chosen.split(",")))
        made[f"images/home/{name}.png"] = stored.tile(ROOT / "docs" / file, numbers, *TILE)
    return made
