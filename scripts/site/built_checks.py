"""What must not be in a page that was built: requests to a network, raw formulas, dead links."""

import html
import os.path
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

_LOADS = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\ssrc=["']?(?:https?:)?//|"""
    r"""<link\b[^>]*rel=["']?(?:stylesheet|preload)[^>]*href=["']?(?:https?:)?//"""
)
_ARTICLE = re.compile(r"<article\b.*?</article>", re.DOTALL)
_QUIET = re.compile(r"<(pre|code|math|script|style|svg)\b.*?</\1>|<[^>]+>", re.DOTALL)
_LEFT = re.compile(r".{0,30}[\\$].{0,30}")
_HREF = re.compile(r"""<a\b[^>]*?\shref=["']?([^"'\s>]+)""")
_ANCHOR = re.compile(r"""<[a-z][^>]*?\s(?:id|name)=["']?([^"'\s>]+)""")


def problems(site: Path) -> list[str]:
    """What is wrong with the pages of a built site.

    Args:
        site: the folder that holds it.
    """
    pages = {page.relative_to(site).as_posix(): page.read_text("utf-8") for page in _pages(site)}
    anchors = {
        name: {unquote(one) for one in _ANCHOR.findall(text)} for name, text in pages.items()
    }
    found = []
    for name, text in pages.items():
        article = "".join(_ARTICLE.findall(text))
        found += [f"{name} loads from a network"] if _LOADS.search(text) else []
        found += [f"{name}: a formula that was not read: {one}" for one in unread(article)]
        found += [
            f"{name}: a link to nothing: {one}" for one in _dead(name, article, anchors, site)
        ]
    return found


def _pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def unread(page: str) -> list[str]:
    """What is left of formulas in the text of a page: backslashes and dollars, with words around.

    Args:
        page: HTML.
    """
    text = html.unescape(_QUIET.sub(" ", page))
    return [" ".join(found.split()) for found in _LEFT.findall(text)]


def _dead(name: str, page: str, anchors: dict[str, set[str]], site: Path) -> Iterator[str]:
    """Links within the site whose page or anchor is not there."""
    for target in dict.fromkeys(_HREF.findall(page)):
        target = html.unescape(target)
        if re.match(r"[a-z]+:|//", target):
            continue
        file, _, anchor = target.partition("#")
        place = (
            os.path.normpath(os.path.join(os.path.dirname(name), unquote(file))) if file else name
        )
        if place not in anchors:
            if not (site / place).exists():
                yield target
        elif anchor and unquote(anchor) not in anchors[place]:
            yield target
