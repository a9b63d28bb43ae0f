"""Formulas that were typed with letters of a keyboard, as a paper writes them: `||mu||^2` is ‖μ‖².

Claims, docstrings and charts are written for terminals. A page has the symbols, and raises and
lowers exponents and indices.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

from markupsafe import Markup

Place = Literal["on the line", "raised", "lowered"]

LETTERS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε"},
    **{"eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "lam": "λ", "mu": "μ", "xi": "ξ"},
    **{"pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "psi": "ψ", "omega": "ω"},
    **{"Delta": "Δ", "Omega": "Ω", "Theta": "Θ", "Sigma": "Σ", "Gamma": "Γ", "Phi": "Φ"},
}
"""Greek letters by the names that are typed for them."""
_GREEK = re.compile(rf"(?<![A-Za-z0-9_.])({'|'.join(LETTERS)})(?=[0-9_]?(?:[^A-Za-z0-9]|_|$))")
_NAMES = "|".join(LETTERS)
_INSIDE = r"((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)"
"""Between brackets, with two more inside them."""
_AFTER_INDEX = re.compile(
    rf"(?:(?<=[{{,])|(?<=\b[^\W\d]_)|(?<=[‖|\u0302\u0303]_))({'|'.join(LETTERS)})(?![A-Za-z])"
)
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"\b[lL]_?inf\b", "ℓ_∞"),
        (r"(?<![\w.])[lL]_?([12])(?![\w.])", r"ℓ_\1"),
        (r"\bsigma2\b", "σ^2"),
        (r"<=>", "⇔"),
        (r"<=", "≤"),
        (r">=", "≥"),
        (r"!=", "≠"),
        (r"\+-", "±"),
        (r"(?<!-)->", "→"),
        (r"\|\|", "‖"),
        (r"<([^<>=≤≥]{1,40},[^<>=≤≥]{1,40})>", r"⟨\1⟩"),
        (r"\bsqrt(?=\()", "√"),
        (r"\bsqrt ", "√"),
        (r"(?<=[‖|])_inf\b", "_∞"),
        (r"√\((\w+)\)(?![\w(])", r"√\1"),
        (r"\bsum_", "Σ_"),
        (rf"\bsum (?=[‖|⟨]|[A-Za-z][_(]|(?:{_NAMES})\b)", "Σ "),
        (rf"\bceil\({_INSIDE}\)", r"⌈\1⌉"),
        (rf"\bfloor\({_INSIDE}\)", r"⌊\1⌋"),
        (r"(?<!\w)(\d+|[A-Za-z]) x (?=(?:\d+|[A-Za-z])(?!\w))", r"\1 × "),
        (r"\bgrad(?=[_‖|])|\bgrad (?=[A-Z]\b|f\b)", "∇"),
        (r"\blog(2|10)\b", r"log_{\1}"),
        (rf"\btilde ({_NAMES}|[A-Za-z])(?![A-Za-z])", "\\1\u0303"),
        (r"(?<!\w)([A-Za-z])\^(?![\w({*+\-−∞])", "\\1\u0302"),
        (r"(?<![\w~])([A-Za-z])~(?![A-Za-z0-9~])", "\\1\u0303"),
        (r"(?<=\S) ~ (?=\S)", " ∼ "),
        (r"(?<![\w'’])([A-Za-z])'(?![\w'])", r"\1′"),
        (r"(?<![\w.'’/-])([a-zW])(\d)(?!\w|\.\d)", r"\1_\2"),
        (r"(?<![\w.])1e\+?(-?)0*(\d+)\b", r"10^\1\2"),
        (r"(?<![\w.])(\d(?:\.\d+)?)e\+?(-?)0*(\d+)\b", r"\1 × 10^\2\3"),
        (r"(?<=[\w)\]‖|*′⟩]) - (?=[\w(\[‖|⟨√∇])", " − "),
        (
            rf"(?<![\w)\]}}’'^.*|‖⟩-])-(?=\.?\d|[(\[‖|⟨√∇]|(?:{_NAMES}|[A-Za-z])(?![A-Za-z]))",
            "−",
        ),
    )
)
_WORDS = "min|max|mean|median|sup|log|lim|argmin|argmax"
_SCRIPT = re.compile(
    r"(?P<raised>(?<=[\w)\]|*'′‖⟩])\^(?:\{(?P<a>[^{}]*)\}|\((?P<b>(?:[^()]|\([^()]*\))*)\)|(?P<c>[+-−]?[\w.]*\w)))"
    r"|(?P<star>(?<![A-Za-z0-9*])(?P<starred>[A-Za-zͰ-Ͽ])(?P<g>\*)(?![A-Za-z0-9*]))"
    r"|(?P<lowered>(?P<base>(?<![A-Za-z0-9])[A-Za-zͰ-Ͽℓ∇][\u0302\u0303]?|[‖|]|(?<=[*′]))_"
    r"(?:\{(?P<d>[^{}]*)\}|(?P<e>[\w∞*]+)))"
    rf"|(?P<under>\b(?P<word>{_WORDS})_(?:\{{(?P<h>[^{{}}]*)\}}|(?P<i>\d+|\w)(?!\w)))"
    r"|(?P<digit>(?<![A-Za-z0-9])(?P<letter>[ͰͱͲ-Ͽ])(?P<f>[0-9])(?![0-9.]))"
)
_VARIABLE = re.compile(
    r"(?<![\w'’.\"“$])(?<!Appendix )(?<!Lemma )(?<!Panel )(?<!panel )(?<!claim )(?<!\b[a-z]-)"
    r"(?:[BCDEFHJLN-Zb-gi-rt-z]|(?<!\d )[GKMhs])[\u0302\u0303]?"
    r"(?=′?(?:[^\w'’.\-]|[.\-](?!\w)|$))|[α-ω]"
)
"""Letters that stand alone, not as the end of "a-d", but for "a", "A" and "I", which are words, and
units; Greek letters."""
_NUMBER = re.compile(r"[-+−]?[\d.]+(?:e[-+]?\d+)?$")
_LONGEST = 300
_UP = str.maketrans("-−+0123456789()n", "⁻⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹⁽⁾ⁿ")
_DOWN = str.maketrans("-−+0123456789()aeoxhklmnpstijruv", "₋₋₊₀₁₂₃₄₅₆₇₈₉₍₎ₐₑₒₓₕₖₗₘₙₚₛₜᵢⱼᵣᵤᵥ")


def pieces(text: str) -> Iterator[tuple[Place, str]]:
    """The text with symbols for their names, cut where something is raised or lowered.

    Args:
        text: words and formulas as one types them.

    Example:
        from advlab.report.symbols import pieces
        list(pieces("theta0^2"))  # on the line "θ", lowered "0", raised "2"
    """
    for pattern, symbol in _RULES:
        text = pattern.sub(symbol, text)
    text = _GREEK.sub(lambda found: LETTERS[found[1]], text)
    text = _AFTER_INDEX.sub(lambda found: LETTERS[found[1]], text)
    last = 0
    for found in _SCRIPT.finditer(text):
        place: Place = "raised" if found["raised"] or found["star"] else "lowered"
        base = found["base"] or found["letter"] or found["starred"] or found["word"] or ""
        start = found.start() + len(base)
        if start > last:
            yield "on the line", text[last:start]
        small = next((found[name] for name in "abcdefghi" if found[name]), "")
        yield place, plain(_signed(small)) if "_" in small else _signed(small)
        last = found.end()
    if last < len(text):
        yield "on the line", text[last:]


def html(text: str) -> Markup:
    """The text for a page: anything can be raised and lowered, and variables are slanted."""
    tags = {"on the line": "{}", "raised": "<sup>{}</sup>", "lowered": "<sub>{}</sub>"}
    found, before = Markup(""), ""
    for place, part in pieces(str(text)):
        found += Markup(tags[place]).format(
            _slanted(part, before if place == "on the line" else "")
        )
        before = part
    return found


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """The text in plain letters: indices and exponents that have no letter of their own stay typed.

    Example:
        from advlab.report.symbols import plain
        plain("||mu||^2 sqrt(n/d)")  # "‖μ‖² √(n/d)"
    """
    return "".join(_plain(place, part) for place, part in pieces(text))


VERBATIM = {"verbatim": True}
"""What a chart says of itself (`usermeta`) whose names are those of someone's data: x5 is no x₅."""


def typeset(spec: Any) -> Any:
    """A chart with symbols in its titles, legends and names.

    Args:
        spec: a Vega-Lite specification, or a part of one; it is left as it is.
    """
    if isinstance(spec, dict) and spec.get("usermeta") == VERBATIM:
        return spec
    return _typeset(spec, shown=False)


_TYPED = re.compile(r"([_^])(?:\{([^{}<>]*)\}|([^\W\d_]|\*)(?![A-Za-z0-9]))|(?<=[ℓ‖|])(∞)")
_LOWERED = "₋₀₁₂₃₄₅₆₇₈₉ₓᵢⱼᵣₜₙₘₖₐₑₒₕₗₚₛᵤᵥ"
_SMALL = dict.fromkeys("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "^") | dict.fromkeys(_LOWERED, "_")
_NORMAL = dict(zip(_SMALL, "−0123456789−0123456789xijrtnmkaeohlpsuv", strict=True))
_TEXTS = re.compile(r"(<(?:text|tspan)\b[^>]*>)([^<]+)(?=</(?:text|tspan)>)")
_RUNS = re.compile(f"[{''.join(_SMALL)}]+")


def scripted(svg: str) -> str:
    """A drawing whose texts raise and lower what has no small letter of its own, such as L_{rob}.

    Args:
        svg: an SVG file with texts that `plain` wrote.
    """
    return _TEXTS.sub(lambda one: one[1] + _raised(one[2]), svg)


def _raised(text: str) -> str:
    # Small letters are missing in many fonts, and then the whole text is set in another.
    text = _RUNS.sub(
        lambda run: f"{_SMALL[run[0][0]]}{{{''.join(_NORMAL[one] for one in run[0])}}}", text
    )
    made, last, height = "", 0, 0
    for found in [*_TYPED.finditer(text), None]:
        between = text[last : found.start() if found else None]
        if between:
            made += f'<tspan dy="{-height}">{between}</tspan>' if height else between
            height = 0
        if found:
            by = -4 if found[1] == "^" else 3
            small = found[2] if found[2] is not None else found[3] or found[4]
            made += f'<tspan dy="{by - height}" font-size="75%">{small}</tspan>'
            last, height = found.end(), by
    return made


_SHOWN = {"title", "sort", "domain", "text"}
_DATA = {"datasets", "values"}
_CODE = {"field", "name", "type", "expr", "test", "labelExpr", "format", "config", "href", "url"}


def _typeset(part: Any, shown: bool) -> Any:
    if isinstance(part, str):
        return plain(part) if shown and not _NUMBER.match(part) else part
    if isinstance(part, list):
        return [_typeset(one, shown) for one in part]
    if isinstance(part, dict):
        return {
            key: _typeset_data(one)
            if key in _DATA
            else one
            if key in _CODE and not isinstance(one, dict)
            else _typeset(one, shown or key in _SHOWN)
            for key, one in part.items()
        }
    return part


def _typeset_data(part: Any) -> Any:
    """Of data every text may be shown, whatever its column is called; addresses are left alone."""
    if isinstance(part, str):
        return part if _NUMBER.match(part) or len(part) > _LONGEST else plain(part)
    if isinstance(part, list):
        return [_typeset_data(one) for one in part]
    if isinstance(part, dict):
        return {key: _typeset_data(one) for key, one in part.items()}
    return part


def _signed(small: str) -> str:
    return small.replace("-", "−").lstrip("+")


def _slanted(part: str, before: str) -> Markup:
    """Variables in italics; `before` is what stands in front of this part."""
    whole = before[-10:] + part
    start, found, last = len(whole) - len(part), Markup(""), len(whole) - len(part)
    for one in _VARIABLE.finditer(whole, start):
        found += whole[last : one.start()]
        found += Markup("<i>{}</i>").format(one[0])
        last = one.end()
    return found + whole[last:]


def _plain(place: Place, part: str) -> str:
    if part == "*":
        return part
    if place == "on the line":
        return part
    table, typed = (_UP, "^") if place == "raised" else (_DOWN, "_")
    small = part.translate(table)
    if part == "∞":
        return part
    if not any(old == new and old != " " for old, new in zip(part, small, strict=True)):
        return small
    return f"{typed}{part}" if len(part) == 1 else f"{typed}{{{part}}}"
