"""The code of the docs runs, page by page, top to bottom in one session, as a reader would."""

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (
    "threats.md",
    "extend.md",
    "data.md",
    "networks.md",
    "recipes.md",
    "measures.md",
    "train.md",
    "linear.md",
    "../README.md",
)


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.S)


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    code = "\n".join(blocks(page))
    assert code
    exec(compile(code, page, "exec"), {"__name__": "docs_page"})
