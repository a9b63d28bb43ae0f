"""The code of the docs runs, page by page, top to bottom in one session, as a reader would.

What a block needs and a reader has (a model, data) stands before it in a comment,
`<!-- setup ... -->`. A block after `<!-- not run: reason -->` is left out.
"""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
NOT_RUN = re.compile(r"^<!-- not run: .+ -->\n```python\n.*?^```$", re.M | re.S)
SETUP_OR_FENCE = re.compile(r"^<!-- setup\n(.*?)^-->$|^```python\n(.*?)^```$", re.M | re.S)
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "src" / "advlab" / "papers").glob("*/README.md"),
    )
    if FENCE.search(page.read_text(encoding="utf-8"))
)


def code_of(page: str) -> str:
    text = NOT_RUN.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return "\n".join(setup or block for setup, block in SETUP_OR_FENCE.findall(text))


def test_pages_are_found():
    assert {"README.md", "docs/attack.md", "docs/extend.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    exec(compile(code_of(page), page, "exec"), {"__name__": "docs_page"})
