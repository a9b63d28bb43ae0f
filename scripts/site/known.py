"""What is known of the papers: their titles and stories, and where measurement disagrees."""

from functools import cache

from addresses import PACKAGE, ROOT

from advlab.papers import ITEMS
from advlab.report import bibliography, findings

PAPERS = PACKAGE / "papers"


@cache
def known_papers() -> dict[str, bibliography.Paper]:
    """The papers, by their short names."""
    return bibliography.load(PAPERS / "papers.toml", ITEMS)


@cache
def known_findings() -> dict[str, findings.Finding]:
    """Findings by the name of their verdict."""
    return findings.load(PAPERS / "findings.toml", ROOT / "docs" / "findings.md")
