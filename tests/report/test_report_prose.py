"""Typed formulas become symbols, dollars become MathML, and nothing becomes markup."""

import inspect
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab.lab.loader import find
from advlab.papers import EXPERIMENTS
from advlab.report import prose, symbols
from advlab.report.prose import paragraphs, words


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("||mu||^2 sqrt(n/d)", "‖μ‖² √(n/d)"),
        ("theta0^2 <= sigma2", "θ₀² ≤ σ²"),
        ("V_i >= 1e-3 at -0.8", "Vᵢ ≥ 10⁻³ at −0.8"),
        ("at most 6.25e+03 or 1e-05", "at most 6.25 × 10³ or 10⁻⁵"),
        ("sum_r <w_r, x>^3 -> 0", "Σᵣ ⟨wᵣ, x⟩³ → 0"),
        ("an l2 ball and linf", "an ℓ₂ ball and ℓ∞"),
        ("||grad_x L||_1 at W0, x~ and R~_xi", "‖∇ₓ L‖₁ at W₀, x̃ and R̃_ξ"),
        ("theta(w, w') of M w*, max_r u_r", "θ(w, w′) of M w*, maxᵣ uᵣ"),
        ("|W - W0|_F - 2/pi, d ~ n^2", "|W − W₀|_F − 2/π, d ∼ n²"),
        ("2^(-2k-2)", "2^{−2k−2}"),
        ("delta = N^(-1/(D+2))/2 of log10 n", "δ = N^{−1/(D+2)}/2 of log₁₀ n"),
        ("||grad f(W) - grad f(W0)||", "‖∇f(W) − ∇f(W₀)‖"),
        ("M sum ||c_r||^2 and the sum of all", "M Σ ‖cᵣ‖² and the sum of all"),
        ("sup |h - h^| of tilde psi_i, u0 and c6.", "sup |h − h\u0302| of ψ\u0303ᵢ, u₀ and c₆."),
        ("8 ceil(log2(1/(alpha u0))) <= R/sqrt(m)", "8 ⌈log₂(1/(α u₀))⌉ ≤ R/√m"),
        ("m x m numbers, 3 x 6 x 6", "m × m numbers, 3 × 6 × 6"),
        ("-y M w*, -<mu, x>, -grad L at x and -x", "−y M w*, −⟨μ, x⟩, −∇L at x and −x"),
        # Words that only look like names of letters, and numbers of theorems, stay.
        ("robust_error of clean_delta, Lemma B.2", "robust_error of clean_delta, Lemma B.2"),
        ("fig5 at n-1, p-0.8, x < y", "fig5 at n-1, p-0.8, x < y"),
        ("--verbose, pre- or re-attacks of t5x", "--verbose, pre- or re-attacks of t5x"),
        ("G1 of (A1)-(B2), a sum (over r)", "G1 of (A1)-(B2), a sum (over r)"),
    ],
)
def test_formulas_as_a_paper_prints_them(typed, printed):
    assert symbols.plain(typed) == printed


def test_a_page_raises_and_lowers_anything():
    made = "<i>R</i><sub><i>L</i>,<i>ξ</i></sub> &lt; 2<sup>−2k</sup>"
    assert symbols.html("R_{L,xi} < 2^(-2k)") == made
    assert symbols.html("sign(w*_j)") == "sign(<i>w</i><sup>*</sup><sub><i>j</i></sub>)"


def test_a_page_slants_variables_and_no_words_units_or_numbers_of_lemmas():
    made = str(symbols.html("a run of n/d = 0.8 in 5 s, Lemma B.9 of Appendix B: it's T, phase I"))
    assert re.findall("<i>(.*?)</i>", made) == ["n", "d", "T"]


def test_a_chart_has_symbols_where_they_are_seen_and_fields_as_they_were():
    spec = {
        "title": "eps = 0.1",
        "encoding": {"color": {"field": "eps", "title": "eps", "sort": ["||mu||"]}},
        "datasets": {"a": [{"eps": "||mu||", "name": "T_0", "shown": "8e-6"}]},
    }
    seen = symbols.typeset(spec)
    assert seen["title"] == "ε = 0.1"
    assert seen["encoding"]["color"] == {"field": "eps", "title": "ε", "sort": ["‖μ‖"]}
    assert seen["datasets"]["a"] == [{"eps": "‖μ‖", "name": "T₀", "shown": "8e-6"}]


def test_an_index_of_a_norm_is_lowered_in_a_drawing_as_in_a_text():
    assert symbols.html("linf") == "ℓ<sub>∞</sub>"
    drawn = symbols.scripted(f"<text>{symbols.plain('linf, ||x||_inf, t to ∞')}</text>")
    assert re.findall(r'dy="3"[^>]*>(.)<', drawn) == ["∞", "∞"]
    assert drawn.count("∞") == 3
    code = prose.words("the value `u0 x v0` of u0")
    assert "<code>u0 x v0</code> of <i>u</i><sub>0</sub>" in code


def test_dollars_are_maths_and_prices_are_not():
    (tree,) = re.findall("<math.*?</math>", prose.words(r"below $R^*(\epsilon)$ at eps"))
    root = ElementTree.fromstring(tree)
    assert "".join(root.itertext()) == "R*(ϵ)"
    assert {one.tag.rpartition("}")[2] for one in root.iter()} >= {"math", "msup", "mi"}
    assert prose.words("from $5 to $6 each") == "from $5 to $6 each"


@pytest.mark.parametrize(
    ("latex", "base"),
    [
        (r"\|\mu\|^2", "‖μ‖"),
        (r"1 + \lVert w - v\rVert_2^2", "‖w−v‖"),
        (r"\frac{|x|^2}{d}", "|x|"),
        ("‖a‖^2", "‖a‖"),
        (r"P(a | b) = \|c\|_1", "‖c‖"),
    ],
)
def test_the_exponent_of_a_norm_is_that_of_the_whole_norm(latex, base):
    root = ElementTree.fromstring(str(prose.maths(latex)))
    (script,) = (one for one in root.iter() if one.tag.endswith(("sup", "sub")))
    assert script[0].tag.endswith("}mrow")
    assert "".join(script[0].itertext()).replace(" ", "") == base


MARKUP = st.sampled_from(
    (
        *("<script>", "</noscript>", "$", r"\text{", "}", "<img src=x onerror=1>", "_", "^", "{"),
        *("[a](javascript:1)", "&lt;", r"\href{javascript:1}{a}", "||", "eps", "\n\n", "- ", "<"),
    )
)
OURS = re.compile(r'</?(?:p|ul|ol|li|pre|code|i|sub|sup|m[a-z]+)(?: [a-z]+="[^"<>]*")*\s*/?>')


@settings(deadline=None, max_examples=50)
@given(st.lists(MARKUP | st.text(max_size=5), max_size=12).map("".join))
def test_no_text_becomes_markup(text):
    for made in (prose.words(text), prose.paragraphs(text)):
        left = OURS.sub("", str(made))
        assert "<" not in left
        assert not re.search(r"<[^>]*\s(?:on\w+|href|src)=", str(made))


def test_documents_keep_links_that_are_https():
    made = prose.markdown("[a](https://a.org) [b](docs/b.md) [c](javascript:c) <hr>")
    assert made.count("<a ") == 1
    assert '<a href="https://a.org">a</a>' in made
    assert "&lt;hr&gt;" in made


def test_a_formula_set_off_between_dollars_is_maths_on_lines_of_its_own():
    found = str(paragraphs("With\n\n    $a_1 \\le 2$\n    $b = \\sqrt{m H}$\n\nand so on."))
    assert found.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"') == 2
    assert "<pre>" not in found
    typed = str(paragraphs("With\n\n    a_1 <= 2, $b$\n\nand so on."))
    assert "<pre>" in typed


def test_a_range_of_letters_is_no_variable():
    assert str(words("panels a-d and e-h of d")) == "panels a-d and e-h of <i>d</i>"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_formula_of_a_docstring_becomes_mathml(name):
    text = inspect.getdoc(find(name)) or ""
    formulas = re.findall(r"\$[^$]+\$", text)
    assert text.count("$") == 2 * len(formulas)
    found = str(paragraphs(text))
    assert "$" not in found
    assert found.count("<math") == len(formulas)
