"""Drawings and charts in fewer letters: without what is not seen, and what is shared once."""

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

_SPACES = re.compile(r'\sxmlns(?::\w+)?="[^"]*"|\bxlink:(?=href=)')
"""In a page elements of a drawing need none."""
_USUAL = {
    **dict.fromkeys(("opacity", "fill-opacity", "stroke-opacity", "stroke-width"), "1"),
    **dict.fromkeys(("x1", "x2", "y1", "y2"), "0"),
    "font-weight": "normal",
    "text-anchor": "start",
    "transform": "translate(0,0)",
}
"""What a browser takes where nothing is said."""
_INHERITED = ("fill", "stroke", "stroke-width", "text-anchor", "font-size", "font-weight")
_ADDRESS = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]+")
_DIGITS = 6
"""Of the numbers in a chart, of which a page tells five."""
_MARKS = {"path", "line", "text"}
_CIRCLE = re.compile(
    r'<path(?: transform="translate\((?P<cx>-?[\d.]+),(?P<cy>-?[\d.]+)\)")? d="M(?P<r>[\d.]+),0'
    r'A(?P=r),(?P=r),0,1,1,-(?P=r),0A(?P=r),(?P=r),0,1,1,(?P=r),0Z?"(?P<rest>[^>]*)/>'
)
_LINE = re.compile(r"<line\b[^>]*/>")
_ATTRIBUTE = re.compile(r' ([\w-]+)="([^"]*)"')
_PLAIN = re.compile(r"-?[\d.]+")
_OUTLINE = re.compile(r'(?<=<path) d="(?=M)((?:M-?[\d.]+,-?[\d.]+|L-?[\d.]+,-?[\d.]+|Z)+)"')
_STEP = re.compile(r"([MLZ])([-\d.,]*)")
_SHIFT = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")


def compact(svg: str) -> str:
    """The same drawing for a page, with fewer letters.

    Args:
        svg: an SVG file.

    Raises:
        ElementTree.ParseError: it is none.
    """
    root = ElementTree.fromstring(_SPACES.sub("", svg))
    _tidy(root)
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")


def abbreviated(svg: str) -> str:
    """The same drawing with circles, lines and outlines in their shortest form.

    Args:
        svg: a part of an SVG file, as text.
    """
    svg = _LINE.sub(_line, _CIRCLE.sub(_circle, svg))
    return _OUTLINE.sub(lambda found: f' d="{_relative(found[1])}"', svg)


def _circle(found: re.Match[str]) -> str:
    place = "".join(
        f' {name}="{found[name]}"' for name in ("cx", "cy") if found[name] not in (None, "0")
    )
    return f'<circle{place} r="{found["r"]}"{found["rest"]}/>'


def _line(found: re.Match[str]) -> str:
    """A moved line as a path, where that is shorter."""
    said = dict(_ATTRIBUTE.findall(found[0]))
    shift = _SHIFT.fullmatch(said.pop("transform", "translate(0,0)"))
    ends = [said.pop(name, "0") for name in ("x1", "y1", "x2", "y2")]
    if shift is None or not all(map(_PLAIN.fullmatch, ends)):
        return found[0]
    x1, y1, x2, y2 = map(Decimal, ends)
    start = _joined(Decimal(shift[1]) + x1, Decimal(shift[2]) + y1)
    across, along = x2 - x1, y2 - y1
    way = f"v{_joined(along)}" if not across else f"l{_joined(across, along)}"
    way = f"h{_joined(across)}" if not along else way
    rest = "".join(f' {name}="{value}"' for name, value in said.items())
    return min((found[0], f'<path d="M{start}{way}"{rest}/>'), key=len)


def _relative(outline: str) -> str:
    """Each corner as the way from the one before, which is exact in decimals."""
    steps: list[str] = []
    here = start = (Decimal(0), Decimal(0))
    for letter, numbers in _STEP.findall(outline):
        if letter == "Z":
            here = start
            steps.append("Z")
            continue
        x, y = (Decimal(one) for one in numbers.split(","))
        if letter == "M":
            start = (x, y)
            steps.append(f"M{_joined(x, y)}")
        elif steps[-1][0] == "l":
            steps[-1] += _joined(x - here[0], y - here[1], after=True)
        else:
            steps.append(f"l{_joined(x - here[0], y - here[1])}")
        here = (x, y)
    return "".join(steps)


def _joined(*numbers: Decimal, after: bool = False) -> str:
    """Numbers with a comma between them where no sign parts them."""
    text = ""
    for number in numbers:
        plain = f"{number.normalize():f}" if number else "0"
        plain = re.sub(r"^(-?)0\.", r"\1.", plain)
        text += f",{plain}" if (text or after) and not plain.startswith("-") else plain
    return text


def rounded(part: Any) -> Any:
    """A chart, or a part of one, whose numbers have as many digits as are seen."""
    if isinstance(part, float) and math.isfinite(part):
        return float(f"{part:.{_DIGITS}g}")
    if isinstance(part, Mapping):
        return {name: rounded(one) for name, one in part.items()}
    return [rounded(one) for one in part] if isinstance(part, list) else part


def addresses(text: str) -> list[str]:
    """The pictures in a text, each once, in their order."""
    return list(dict.fromkeys(_ADDRESS.findall(text)))


def by_place(part: Any, drawn: Sequence[str]) -> Any:
    """A chart with the places of pictures for their addresses, which stand in its drawing already.

    Args:
        part: a Vega-Lite specification, or a part of one; it is left as it is.
        drawn: the addresses in the drawing; `page.js` reads them there.
    """
    places = {address: f"picture:{place}" for place, address in enumerate(drawn)}

    def replaced(one: Any) -> Any:
        if isinstance(one, dict):
            return {key: replaced(inner) for key, inner in one.items()}
        if isinstance(one, list):
            return [replaced(inner) for inner in one]
        return places.get(one, one) if isinstance(one, str) else one

    return replaced(part) if places else part


def _tidy(element: ElementTree.Element) -> None:
    """Bottom up: what is left of the children, then what they share."""
    kept: list[ElementTree.Element] = []
    for one in list(element) if element.tag != "clipPath" else []:
        if _is_unseen(one):
            continue
        _tidy(one)
        _shorten(one)
        if one.tag != "g":
            kept.append(one)
        elif len(one):
            kept.extend(one if not one.attrib else [_merged(one)])
    if element.tag != "clipPath":
        element[:] = kept
    if element.tag == "g":
        _share(element, kept)


def _is_unseen(element: ElementTree.Element) -> bool:
    """Points that only carry a tooltip, labels without room, and grounds that are not seen."""
    if element.tag not in _MARKS:
        return False
    hidden = element.get("opacity") == "0" or element.get("display") == "none"
    return hidden or (element.tag == "path" and set(element.attrib) <= {"d"})


def _shorten(element: ElementTree.Element) -> None:
    """Without what is usual, and a text with its place instead of a move to it."""
    if element.tag not in _MARKS and element.tag != "g":  # of a gradient other things are usual
        return
    for name, usual in _USUAL.items():
        if element.get(name) == usual:
            del element.attrib[name]
    shift = _SHIFT.fullmatch(element.get("transform", ""))
    # Lines of a text that begin anew at x = 0 count from where the text is moved to.
    if shift and element.tag == "text" and not any("x" in one.attrib for one in element):
        del element.attrib["transform"]
        element.attrib |= {"x": shift[1], "y": shift[2]}


def _merged(group: ElementTree.Element) -> ElementTree.Element:
    """A group that only moves its only child, which is such a group too, as one."""
    inner = group[0]
    if len(group) > 1 or inner.tag != "g":
        return group
    moves = [_SHIFT.fullmatch(one.attrib.get("transform", "")) for one in (group, inner)]
    if any(set(one.attrib) != {"transform"} for one in (group, inner)) or None in moves:
        return group
    x, y = (sum(float(move[axis]) for move in moves if move) for axis in (1, 2))
    inner.set("transform", f"translate({x:g},{y:g})")
    return inner


def _share(group: ElementTree.Element, children: Sequence[ElementTree.Element]) -> None:
    """What all children say alike is said by their group."""
    if len(children) < 2 or not all(one.tag in _MARKS for one in children):
        return
    for name in _INHERITED:
        said = {one.get(name) for one in children}
        if len(said) == 1 and None not in said and name not in group.attrib:
            group.set(name, said.pop() or "")
            for one in children:
                del one.attrib[name]
