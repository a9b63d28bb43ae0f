"""Where a number came from: what computed it, in which versions, and the commit of the source."""

import os
import platform
import re
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
def machine() -> str:
    """The processor, its cores and the system: "AMD EPYC, 2 cores, Linux x86_64"."""
    cores = os.cpu_count() or 1
    kind, system = platform.machine(), platform.system()
    processor = _processor() or platform.processor() or kind
    count = "1 core" if cores == 1 else f"{cores} cores"
    return f"{processor}, {count}, {system} {kind}".strip()


def _processor() -> str:
    """The model that the system names; empty where it names none."""
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:  # there is no such file but on Linux
        return ""
    return " ".join(found[1].split()) if found else ""


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
