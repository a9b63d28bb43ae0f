"""The page: whole, safe and readable without JavaScript."""

import base64
import gzip
import json
import re
import struct
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import unquote

import pytest
from sample_results import KNOWN, convergence, lasso, quick, results

from advlab.core.errors import AdvlabError
from advlab.report import Assumption, Failure, Maker, Scope
from advlab.report import page as page_module
from advlab.report.continued import continued, in_brackets
from advlab.report.findings import Finding, load
from advlab.report.page import NoChart, render, write_report
from advlab.report.printed import Printed, Prints
from advlab.report.symbols import typeset


class Page(HTMLParser):
    """The page as a browser reads it: tags with attributes, visible text, and scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.words, self.scripts, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style", "noscript"):
            self.open.append((tag, dict(attrs).get("id")))

    def handle_endtag(self, tag):
        if tag in ("script", "style", "noscript"):
            self.open.pop()

    def handle_data(self, data):
        if not self.open:
            self.words.append(data)
        elif self.open[-1][0] == "script":
            self.scripts.append((data, self.open[-1][1]))

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def unpacked(text: str) -> str:
    return gzip.decompress(base64.b64decode(text)).decode()


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render(results(), KNOWN))


def test_the_header_and_the_index_count_the_verdicts(page):
    assert "7 verdicts from 3 experiments of 2 papers" in page.text
    assert "1 experiment ran at smoke scale, which decides nothing." in page.text
    assert "3 supported 1 refuted 3 undecided 0 outside 2 failed cases" in page.text
    bars = [attrs["aria-label"] for _, attrs in page.tags if attrs.get("class") == "bar"]
    assert bars == [
        "1 supported, 1 undecided",
        "2 supported, 1 refuted, 2 undecided",
        "3 supported, 1 refuted, 3 undecided",
    ]


def test_every_link_inside_the_page_has_a_target(page):
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    links = [
        unquote(attrs["href"][1:])
        for tag, attrs in page.tags
        if tag == "a" and attrs["href"][0] == "#"
    ]
    assert len(ids) == len(set(ids))
    assert {"generalization-fig5", "generalization-fig4", "benign-fig1"} <= set(links) <= set(ids)
    assert "generalization/fig5/4" in links  # a verdict's own link is its name


def test_a_verdict_shows_claim_rule_number_interval_and_outcome(page):
    fig5 = page.text[page.text.index("Figure 5: adversarial training reaches") :]
    assert (
        "supported ours The adversarial risk ends within 1 % of the optimum. 0.002951 0.002828 to "
        "0.003073 excess risk over the variance of y ( ε = 0) Rule mean over replicates of "
        "excess risk over the variance of y is below 0.01, "
        "in each of 3 groups" in fig5
    )
    assert "Name generalization/fig5/4 " in fig5
    assert "undecided ours The bias vanishes. not measured Rule" in fig5
    strips = [attrs["aria-label"] for _, attrs in page.tags if "strip" in attrs.get("class", "")]
    assert "measured 0.002951, interval 0.002828 to 0.003073, threshold 0.01" in strips


def test_the_numbers_of_a_card_are_in_the_unit_of_its_claim():
    one = convergence()
    left = one.verdicts[0].model_copy(
        update={
            "measured": 0.1,
            "low": 0.05,
            "high": 0.15,
            "rule": "mean over replicates of what is left to the bound is above 0, in each of 2 "
            "groups (whole 95 % interval)",
            "note": "share of neurons, above a half, the worst of 2; 20 replicates",
        }
    )
    prints = Prints(numbers={one.name(left): Printed(printed="0.8", where="Section 2", value=0.8)})
    results = [one.model_copy(update={"verdicts": [left]}), quick()]
    page = Page(render(results, {}, prints=prints))
    assert "0.8 (Section 2) 0.6 0.55 to 0.65 share of neurons; asked: above a half" in page.text
    assert "0.6 0.55 to 0.65 share of neurons paper: 0.8 Rule mean over replicates of" in page.text
    assert "what is left to the bound" not in page.text
    assert "; 0.1 is left to the bound" in page.text


def test_a_claim_that_goes_on_stands_below_the_ones_it_continues():
    words = (
        *("Most neurons turn", "and keep theta above 0.8", "more than half of them"),
        *("xi = 0 hurts", "with xi = 1 every run ends", "without any new ones", "and on eps"),
    )
    one = convergence()
    verdicts = [
        one.verdicts[0].model_copy(update={"id": str(place), "claim": claim})
        for place, claim in enumerate(words)
    ]
    found = [[each.id for each in before] for before in continued(verdicts)]
    assert found == [[], ["0"], ["0", "1"], [], [], ["4"], ["4", "5"]]
    page = Page(render([one.model_copy(update={"verdicts": verdicts})], {}))
    assert "Most neurons turn; and keep θ above 0.8 … more than half of them" in page.text
    cards = [attrs["data-words"] for _, attrs in page.tags if "data-outcome" in attrs]
    assert cards[2].split() == [*words[0].split(), *words[1].split(), *words[2].split()]
    assert in_brackets(()) == ""


def test_a_known_finding_is_inside_its_verdict(page):
    assert (
        "Known finding The printed constant drops a factor of two. docs/findings.md#fig5 "
        "Name generalization/fig5/5" in page.text
    )
    whole = KNOWN["generalization/fig5/5"].model_copy(
        update={"text": "As **printed**, eq. 5 at eps = 1 [is wrong](javascript:alert(1))."}
    )
    text = render([convergence()], {"generalization/fig5/5": whole})
    assert "<p>As <strong>printed</strong>, eq. 5 at <i>ε</i> = 1" in text
    assert 'href="javascript' not in text


def test_failed_cases_are_gaps_with_reasons(page):
    assert "2 of 8 cases failed" in page.text
    assert "n = 500, penalty = 0.001, seed = 0 FloatingPointError: loss is nan" in page.text


def test_smoke_decides_nothing_and_says_so(page):
    assert page.text.count("they decide nothing") == 1


def test_where_it_came_from_is_there(page):
    assert "commit f6fc3e6 advlab 0.1.0 torch 2.13.0" in page.text
    assert "dimension 10 points 1000 eps [0, 0.1, 0.5] xi 0.1" in page.text


def test_the_docstring_becomes_paragraphs_lists_and_formulas():
    text = render([convergence()], {})
    assert "<p>With <code>d = 10</code> features" in text
    formula = "<i>R</i><sup>*</sup>(<i>ε</i>) = min over <i>θ</i> of <i>R</i>(<i>θ</i>, <i>ε</i>)"
    assert f"<pre>{formula}</pre>" in text
    assert "<li>the dashed lines are <i>R</i><sup>*</sup>, from the closed form (5);</li>" in text


def test_the_page_asks_the_network_for_nothing(page):
    loading = [attrs.get("src") or attrs.get("href") for tag, attrs in page.tags if tag != "a"]
    assert {place for place in loading if place} == {"data:,"}
    policy = [attrs["content"] for _, attrs in page.tags if "http-equiv" in attrs]
    assert policy[0].startswith("default-src 'none'")


def test_the_bundle_is_there_once_and_only_if_there_is_a_chart(page):
    (packed,) = (script for script, kind in page.scripts if kind == "bundle")
    assert "window.vegaEmbed=" in unpacked(packed)
    assert 'id="bundle"' not in render([quick().model_copy(update={"chart": {}})], {})


EVIL = "</script><script>alert(1)</script><!-- & \" '"


def test_text_of_others_cannot_become_markup():
    before = lasso()
    chart = {"mark": "point", "title": EVIL, "data": {"values": [{EVIL: EVIL}]}}
    verdict = before.verdicts[0].model_copy(
        update=dict.fromkeys(("id", "claim", "rule", "note"), EVIL)
    )
    texts = dict.fromkeys(
        ("experiment", "paper", "item", "title", "about", "scale", "commit"), EVIL
    )
    failed = [Failure(case={EVIL: EVIL}, reason=EVIL)]
    maker = Maker(versions={EVIL: EVIL}, commit=EVIL, code=EVIL, runs=1)
    more = {"settings": {EVIL: EVIL}, "versions": {EVIL: EVIL}, "made_by": [maker]}
    result = before.model_copy(
        update={**texts, **more, "failed": failed, "chart": chart, "verdicts": [verdict]}
    )
    known = {result.name(verdict): Finding(finding=EVIL, docs="docs/" + EVIL)}
    evil, plain = Page(render([result], known)), Page(render([before], {}))
    count = [sum(tag == "script" for tag, _ in one.tags) for one in (evil, plain)]
    assert count[0] == count[1]
    assert json.loads(unpacked(evil.scripts[0][0]))["spec"] == typeset(chart)
    assert evil.text.count("alert(1)") > 10


def test_a_finding_links_to_the_docs_only():
    with pytest.raises(AdvlabError, match="docs"):
        Finding(finding="a", docs="javascript:alert(1)")


def test_findings_are_read_by_name(tmp_path):
    path = tmp_path / "findings.toml"
    assert load(path) == {}
    path.write_text('["a/b/1"]\nfinding = "why"\ndocs = "docs/findings.md#b"\n')
    assert load(path) == {"a/b/1": Finding(finding="why", docs="docs/findings.md#b")}
    for wrong in ("[", "a = 1", '["a"]\nfinding = "why"'):
        path.write_text(wrong)
        with pytest.raises(AdvlabError):
            load(path)


def test_the_page_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "report.html"
    write_report([quick()], path, {})
    first = path.read_text()
    broken = quick().model_copy(update={"chart": {"mark": object()}})
    with pytest.raises(TypeError):
        write_report([broken], path, {})
    assert path.read_text() == first
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    with pytest.raises(AdvlabError, match="can be written"):
        write_report([quick()], path.parent, {})
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_tables_have_headers_and_charts_have_a_text(page):
    assert all("scope" in attrs for tag, attrs in page.tags if tag == "th")
    charts = [attrs for _, attrs in page.tags if attrs.get("class") == "chart"]
    assert len(charts) == 3
    assert all(len(attrs["data-alt"]) > 20 for attrs in charts)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_card_has_its_kind_rule_name_and_scope():
    wide = Scope(assumptions=[Assumption(name="A1", condition="C >= 10", reached=3.0, holds=False)])
    sizes = {"seeds": 20, "d": [1, 2, 4, 8, 16], "loss": ["hinge", "logistic"], "train_rate": 0.05}
    plain = Scope(reduced="200 of 1000 steps", sizes=sizes)
    one = convergence()
    verdicts = [verdict.model_copy(update={"scope": wide}) for verdict in one.verdicts]
    verdicts[0] = verdicts[0].model_copy(update={"scope": plain})
    text = render([one.model_copy(update={"verdicts": verdicts})], {})
    cards = re.findall(r'<details class="card .*?</dl>', text, re.DOTALL)
    assert len(cards) == len(verdicts)
    for card in cards:
        assert {"Rule", "Scope", "Name"} <= set(re.findall(r"<dt>(\w+)</dt>", card))
    # What several claims have is in the page once, and each of them leads to it.
    assert text.count("reached 3): not met") == 1
    (shared,) = re.findall(r'<p id="([^"]+)">[^<]*<[^/].*?reached 3\): not met', text) or [""]
    assert sum(f'href="#{shared}"' in card for card in cards) == len(verdicts) - 1
    first = Page(cards[0]).text
    assert "reduced: 200 of 1000 steps" in first
    assert "seeds 20, d 1 to 16 (5 values), loss hinge / logistic, train rate 0.05" in first


def undrawn(*sizes: int) -> tuple[list, dict[str, NoChart]]:
    """Results without charts, and pictures of so many bytes for them."""
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 900, 600)
    bare = [
        quick().model_copy(update={"chart": {}, "experiment": f"toy/{size}", "paper": "toy"})
        for size in sizes
    ]
    pictures = [header + bytes(size) for size in sizes]
    marks = [NoChart("The summary is short", one) for one in pictures]
    return bare, {one.experiment: mark for one, mark in zip(bare, marks, strict=True)}


def test_a_page_has_as_many_pictures_as_it_has_room_for_the_smallest_first(monkeypatch):
    bare, pictures = undrawn(30_000, 300_000, 3_000)
    without = len(render(bare, {}))
    for room, kept in ((0, []), (60_000, ["toy-30000", "toy-3000"]), (1_000_000, 3 * ["toy"])):
        monkeypatch.setattr(page_module, "_LARGEST", without + room)
        text = render(bare, {}, undrawn=pictures)
        found = re.findall(r'<div class="pictured" id="(toy-\d+)-picture"', text)
        assert len(found) == len(kept)
        assert all(one.startswith(name) for one, name in zip(found, kept, strict=True))
        assert len(text) <= without + room + 1000 * len(bare)
        assert text.count("there is no figure here") == len(bare) - len(kept)
