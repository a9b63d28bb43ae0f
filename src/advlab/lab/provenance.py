"""Where a number came from: versions of what computed it, and the commit of the source."""

import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .. import __version__


@cache
def versions() -> dict[str, str]:
    """The versions of everything that can change a bit of a result."""
    found = {"python": platform.python_version(), "advlab": __version__}
    for package in ("torch", "numpy", "scipy", "polars"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found


@cache
def commit() -> str:
    """The commit of advlab's own source, `-dirty` with changes in it; empty outside a checkout."""
    # A package in an environment inside some other repository must not borrow that one's commit.
    if _git("ls-files", "--error-unmatch", "core/errors.py") is None:
        return ""
    return _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") or ""


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _git(*arguments: str) -> str | None:
    here = Path(__file__).parent.parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
