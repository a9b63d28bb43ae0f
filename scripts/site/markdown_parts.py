"""What our Markdown needs beyond python-markdown: formulas, `<w, x>` in text, lists as GitHub's."""

import html
import re
from typing import Literal

from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

from advlab.report.prose import maths
from advlab.report.symbols import html as with_symbols

_TAGS = (
    "a|abbr|b|br|caption|code|details|div|em|figcaption|figure|i|img|kbd|li|ol|p|pre|small|span|strong|"
    "style|sub|summary|sup|table|tbody|td|th|thead|tr|ul"
)
_ANGLE = re.compile(rf"<(?!!--|/?(?:{_TAGS})\b|https?:|autoref\b)")
_CODE_SPAN = re.compile(r"(`+[^`]*`+)")
_INLINE = r"\$(?![\s$])((?:\\.|[^$\\`])+?)(?<!\s)\$(?!\d)"
_BLOCK = r"\$\$(.+?)\$\$"
_STARS = re.compile(rf"`+[^`]*`+|{_BLOCK}|{_INLINE}|\\\*|\*+")
_ITEM = re.compile(r"( *)(?:[-*+]|\d+[.)]) ")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")
_QUIET = re.compile(r"(<(pre|code|math|script|style|svg)\b.*?</\2>|<[^>]+>)", re.DOTALL)


class Readable(Extension):
    """Our Markdown as GitHub reads it, and formulas between dollars as MathML."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(_AsGitHub(md), "as_github", 31)
        md.inlinePatterns.register(_Formula(_BLOCK, md, "block"), "formula_block", 186)
        md.inlinePatterns.register(_Formula(_INLINE, md), "formula", 185)


class _AsGitHub(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        done: list[str] = []
        fenced = listed = False
        emphasis: list[str] = []
        for line in lines:
            if not line.strip() or line.lstrip().startswith(("|", "#")) or _ITEM.match(line):
                emphasis = []
            if _FENCE.match(line):
                fenced = not fenced
            elif not fenced:
                item = _ITEM.match(line)
                code = line.startswith("    ") and not listed
                if item and len(item[1]) < 4:
                    if not listed and done and done[-1].strip():
                        done.append("")
                    line = " " * (4 * ((len(item[1]) + 1) // 2)) + line.lstrip() if listed else line
                    listed = True
                elif line.strip() and not line.startswith(" "):
                    listed = listed and bool(done and done[-1].strip())
                line = line if code else _escaped(line, emphasis)
            done.append(line)
        return done


def _escaped(line: str, emphasis: list[str]) -> str:
    row = line.lstrip().startswith("|")
    parts = _CODE_SPAN.split(_stars(line, emphasis))
    return "".join(
        (part.replace("\\|", "|") if row else part) if place % 2 else _ANGLE.sub("&lt;", part)
        for place, part in enumerate(parts)
    )


def _stars(line: str, emphasis: list[str]) -> str:
    """Stars that GitHub takes as letters, as in `w* and R*(eps)`, escaped.

    Args:
        line: of a paragraph.
        emphasis: the runs of stars that are open, from the lines before; kept up to date.
    """

    def kept(found: re.Match[str]) -> str:
        run, before, after = found[0], line[: found.start()][-1:], line[found.end() :][:1]
        if run[0] != "*" or (not line[: found.start()].strip() and after == " "):  # a list's
            return run
        if before != "_" and run in emphasis and _flanks(after, before):
            emphasis.remove(run)
        elif before != "_" and _flanks(before, after):
            emphasis.append(run)
        else:
            return run.replace("*", "\\*")
        return run

    return _STARS.sub(kept, line)


def _flanks(outer: str, inner: str) -> bool:
    """CommonMark: whether a run between two letters belongs to the inner one."""
    if not inner or inner.isspace():
        return False
    return inner.isalnum() or not outer or not outer.isalnum()


class _Formula(InlineProcessor):
    def __init__(self, pattern: str, md: Markdown, display: Literal["inline", "block"] = "inline"):
        super().__init__(pattern, md)
        self.display = display

    def handleMatch(self, m: re.Match[str], data: str):  # pyright: ignore
        place = self.md.htmlStash.store(str(maths(html.unescape(m[1]), self.display)))
        return place, m.start(0), m.end(0)


def symbols(page: str) -> str:
    """HTML whose text has symbols for their names, `||mu||^2` as ‖μ‖²; code stays as typed."""
    parts = _QUIET.split(page)
    # The pattern has two groups: text, tag or quiet element, name of that element, text, ...
    return "".join(
        (part or "") if place % 3 == 1 else str(with_symbols(html.unescape(part)))
        for place, part in enumerate(parts)
        if place % 3 != 2 and part is not None
    )


def slug(heading: str, separator: str = "-") -> str:
    """The anchor that GitHub gives to a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", separator)
