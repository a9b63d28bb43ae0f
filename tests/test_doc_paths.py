"""Every file that our Markdown names, between backticks or in a link, is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "advlab"
HISTORY = "CHANGELOG.md"
"""It names files as they were."""
PAGES = [
    page.relative_to(ROOT).as_posix()
    for place in ("*.md", ".github/**/*.md", "benchmarks/**/*.md", "docs/**/*.md", "src/**/*.md")
    for page in sorted(ROOT.glob(place))
]
_FENCED = re.compile(r"^(```|~~~).*?^\1|^    .*?$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"`([\w./-]+/[\w.-]+\.(?:py|md|toml|sh))`")
_LINKED = re.compile(r"\]\((?!https?:|mailto:|#)([^()\s#]+)")
_EXAMPLE = re.compile(r"^(?:path/|my_|their_)|^/")
"""A reader's own file."""


def missing(text: str, folder: Path) -> list[str]:
    """The files that a page names and that are not there.

    Args:
        text: Markdown.
        folder: where the page is; a file stands there, in a folder of the repository, or in a room.
    """
    text = _FENCED.sub("", text)
    paper = folder.parts[folder.parts.index("papers") + 1 :][:1] if "papers" in folder.parts else ()
    places = [folder, ROOT, PACKAGE, PACKAGE / "papers", ROOT / "tests"]
    places += [PACKAGE / "papers" / name for name in paper]
    gone = [
        name
        for name in _NAMED.findall(text)
        if not _EXAMPLE.match(name) and not any((place / name).is_file() for place in places)
    ]
    return gone + [name for name in _LINKED.findall(text) if not (folder / name).exists()]


@pytest.mark.parametrize("page", [page for page in PAGES if page != HISTORY])
def test_files_that_a_page_names_are_there(page):
    assert missing((ROOT / page).read_text(encoding="utf-8"), (ROOT / page).parent) == []


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("see `attacks/layout.py`", ["attacks/layout.py"]),
        ("see `attacks/pgd.py` and [it](test_site.py)", []),
        ("[words](no/such.md#part)", ["no/such.md"]),
        ("yours: `path/to/figure.py`", []),
        ("```sh\n`attacks/layout.py`\n```", []),
    ],
)
def test_a_file_that_is_gone_is_found(text, gone):
    assert missing(text, Path(__file__).parent) == gone
