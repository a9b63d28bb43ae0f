"""Known findings: verdicts that are refuted for a reason that is written down."""

import re
import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from ..core.config import Config
from ..core.errors import AdvlabError

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


class Finding(Config):
    """Where a measurement and a paper disagree.

    Args:
        finding: one sentence.
        docs: the page that explains it.
        text: that explanation itself, in Markdown, where the page is at hand.
    """

    finding: Annotated[str, StringConstraints(min_length=1)]
    docs: Annotated[str, StringConstraints(pattern=r"^(docs/|https://)")]
    text: str = ""


def load(path: Path, page: Path | None = None) -> dict[str, Finding]:
    """Findings by the name of their verdict; a file that is not there holds none.

    Args:
        path: a TOML file with a table per verdict.
        page: the Markdown page whose sections `docs` names; without it findings have no text.
    """
    if not path.exists():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AdvlabError(f"{path} must be TOML", error) from None
    loose = [name for name, entry in tables.items() if not isinstance(entry, dict)]
    if loose:
        raise AdvlabError(f'{path} must hold tables such as ["verdict id"]', ", ".join(loose))
    sections = _sections(page) if page is not None and page.is_file() else {}
    found = {}
    for name, entry in tables.items():
        anchor = str(entry.get("docs")).partition("#")[2]
        found[name] = Finding(**{"text": sections.get(anchor, ""), **entry})
    return found


def _sections(page: Path) -> dict[str, str]:
    """What stands under each heading, by the heading's anchor, without comments."""
    found: dict[str, str] = {}
    whole = _COMMENT.sub("", page.read_text(encoding="utf-8"))
    for section in re.split(r"^#{2,3} ", whole, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        found[kept.replace(" ", "-")] = text.strip()
    return found
