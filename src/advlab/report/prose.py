"""Words of docstrings, claims and findings as HTML: maths between dollars becomes MathML.

Nothing of it can become markup of its own: raw HTML is escaped, and MathML is checked.
"""

import inspect
import re
from functools import cache
from typing import Any, Literal
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from . import symbols

_MATHML = "{http://www.w3.org/1998/Math/MathML}"
_ELEMENTS = frozenset(
    (
        *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mstyle", "mpadded", "mphantom"),
        *("msup", "msub", "msubsup", "mover", "munder", "munderover", "mfrac", "msqrt", "mroot"),
        *("mtable", "mtr", "mtd", "menclose", "mfenced"),
    )
)
_SCRIPTS = {f"{_MATHML}{name}" for name in ("msup", "msub", "msubsup")}
_LIMITS = {"min", "max", "sup", "inf", "lim", "argmin", "argmax"}
"""Operators with what they range over below them, on a line of their own."""
_BARS = {"‖", "∥", "|"}
ElementTree.register_namespace("", _MATHML.strip("{}"))
_DOLLARS = re.compile(r"\$(?![\s$])((?:\\.|[^$\\])+?)(?<!\s)\$(?!\d)", re.DOTALL)


def paragraphs(text: str) -> Markup:
    """A docstring: paragraphs, lists, indented formulas, `code` and $maths$.

    Args:
        text: as a docstring has it, indented or not.
    """
    return Markup(_docstrings().render(inspect.cleandoc(text)).strip())


def words(text: str) -> Markup:
    """A line of text, as a claim has it: symbols, `code` and $maths$, and no paragraph around it.

    Example:
        from advlab.report.prose import words
        words("the risk is below $R^*$ at eps = 0.5")
    """
    return Markup(_docstrings().renderInline(" ".join(str(text).split())))


def markdown(text: str) -> Markup:
    """A part of our documentation; links that lead out of the page stay only if they are https."""
    return Markup(_documents().render(text).strip())


def maths(latex: str, display: Literal["inline", "block"] = "inline") -> Markup:
    """A formula in LaTeX as MathML, which browsers draw by themselves.

    What cannot be read stays as it was typed.

    Args:
        latex: what stands between the dollars.
        display: in a line of words, or on lines of its own, where limits stand below their sums.
    """
    source = latex.replace("<", r"\lt ").replace(">", r"\gt ").replace("&", r"\& ")
    try:
        text = convert(source, display=display)
        tree = ElementTree.fromstring(text)
    except Exception:  # the converter raises whatever it stumbles on
        return Markup("<code>{}</code>").format(latex)
    names = [name for one in tree.iter() for name in one.attrib]
    known = all(str(one.tag).removeprefix(_MATHML) in _ELEMENTS for one in tree.iter())
    if not known or any(name.startswith("on") or "href" in name for name in names):
        return Markup("<code>{}</code>").format(latex)
    for element in list(tree.iter()):
        _group_norms(element)
        if display == "block" and element.tag == f"{_MATHML}msub" and element[0].text in _LIMITS:
            element.tag = f"{_MATHML}munder"
    return Markup(ElementTree.tostring(tree, encoding="unicode"))


def _group_norms(element: ElementTree.Element) -> None:
    """Norms and absolute values with an exponent or an index become groups inside an element.

    The converter gives the exponent to the last bar, and browsers draw it too high.
    """
    for one in list(element):
        if one.tag not in _SCRIPTS or not _is_bar(one[0]):
            continue
        end = list(element).index(one)
        before = (at for at in range(end - 1, -1, -1) if _is_bar(element[at], one[0].text))
        start = next(before, None)
        if start is not None:
            group = ElementTree.Element(f"{_MATHML}mrow")
            group.extend([*element[start:end], one[0]])
            one[0] = group
            element[start:end] = []


def _is_bar(element: ElementTree.Element, bar: str | None = None) -> bool:
    """Whether it is a bar, or this very one."""
    return not len(element) and element.text in (_BARS if bar is None else {bar})


@cache
def _docstrings() -> MarkdownIt:
    """Stars, underscores and angles are maths there, not emphasis, links or tags."""
    reader = MarkdownIt("commonmark", {"html": False})
    reader.disable(["emphasis", "link", "image", "autolink", "html_inline", "html_block", "entity"])
    reader.disable(["escape", "heading", "lheading", "blockquote", "hr", "reference"])
    return _with_maths(reader)


@cache
def _documents() -> MarkdownIt:
    reader = (
        MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "autolink"])
    )
    reader.add_render_rule("link_open", _link_open)
    reader.add_render_rule("link_close", _link_close)
    reader.inline.ruler.before("emphasis", "star_below", _star_below)
    return _with_maths(reader)


def _star_below(state: Any, silent: bool) -> bool:
    """The star of `L_*(W_*)` is an index."""
    if not state.src.startswith("_*", state.pos):
        return False
    if not silent:
        state.pending += "_*"
    state.pos += 2
    return True


def _with_maths(reader: MarkdownIt) -> MarkdownIt:
    reader.inline.ruler.before("backticks", "maths", _find_maths)
    reader.add_render_rule("maths", lambda _, tokens, at, *__: maths(tokens[at].content))
    reader.add_render_rule("text", lambda _, tokens, at, *__: symbols.html(tokens[at].content))
    reader.add_render_rule("code_block", _formula)
    return reader


def _find_maths(state: Any, silent: bool) -> bool:
    found = _DOLLARS.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("maths", "math", 0).content = found[1]
    state.pos = found.end()
    return True


def _formula(_: Any, tokens: Any, at: int, *__: Any) -> str:
    text = tokens[at].content.rstrip()
    lines = [_DOLLARS.fullmatch(line.strip()) for line in text.splitlines()]
    if all(lines):
        return "".join(f"<p>{maths(line[1], 'block')}</p>\n" for line in lines if line)
    command = text.startswith("advlab ")
    return Markup("<pre>{}</pre>\n").format(escape(text) if command else symbols.html(text))


def _link_open(_: Any, tokens: Any, at: int, *__: Any) -> str:
    address = str(tokens[at].attrs.get("href", ""))
    return Markup('<a href="{}">').format(address) if address.startswith("https://") else "<span>"


def _link_close(_: Any, tokens: Any, at: int, *__: Any) -> str:
    level = tokens[at].level
    opening = next(
        one for one in reversed(tokens[:at]) if one.type == "link_open" and one.level == level
    )
    return "</a>" if str(opening.attrs.get("href", "")).startswith("https://") else "</span>"
