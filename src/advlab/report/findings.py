"""Known findings: verdicts that are refuted for a reason that is written down."""

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from ..core.config import Config
from ..core.errors import AdvlabError


class Finding(Config):
    """Where a measurement and a paper disagree, in one sentence, and the page that explains it."""

    finding: Annotated[str, StringConstraints(min_length=1)]
    docs: Annotated[str, StringConstraints(pattern=r"^(docs/|https://)")]


def load(path: Path) -> dict[str, Finding]:
    """Findings by the name of their verdict; a file that is not there holds none."""
    if not path.exists():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AdvlabError(f"{path} must be TOML", error) from None
    loose = [name for name, entry in tables.items() if not isinstance(entry, dict)]
    if loose:
        raise AdvlabError(f'{path} must hold tables such as ["verdict id"]', ", ".join(loose))
    return {name: Finding(**entry) for name, entry in tables.items()}
