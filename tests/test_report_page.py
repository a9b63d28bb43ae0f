"""The page: whole, safe and readable without JavaScript."""

import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from advlab.errors import AdvlabError
from advlab.report import Failure, Result, above, below, decreasing, every, sample, undecide, within
from advlab.report.charts import boxes, curves, heat, panels, points
from advlab.report.findings import Finding, load
from advlab.report.page import render, write_report

OPTIMAL = {0.0: 1.0, 0.1: 1.595, 0.5: 5.385}


def training(steps=400, seeds=20) -> pl.DataFrame:
    """Risks that fall to a little above their optimum, as in a low-dimensional linear model."""
    rng = np.random.default_rng(0)
    step, seed = (axis.ravel() for axis in np.meshgrid(np.arange(steps), np.arange(seeds)))
    tables = []
    for eps, best in OPTIMAL.items():
        noise = 1 + 0.08 * rng.normal(size=seeds)[seed]
        fall = (11 - best) * np.exp(-step / 60)
        columns = {"step": step, "seed": seed, "train": (0.97 * best + fall) * noise}
        columns |= {
            "test": best + 0.02 * noise + fall * noise,
            "gap": np.exp(-step / (60 + 90 * eps)) * noise,
        }
        tables.append(pl.DataFrame(columns).with_columns(eps=pl.lit(eps)))
    return pl.concat(tables)


def convergence() -> Result:
    table = training()
    best = pl.DataFrame({"eps": list(OPTIMAL), "test": list(OPTIMAL.values())})
    last = table.filter(pl.col("step") == 399).join(best, on="eps", suffix="_best")
    last = last.with_columns(excess=(pl.col("test") - pl.col("test_best")) / 11)
    axes = {"color": "eps", "x_title": "iteration"}
    chart = panels(
        [
            curves(table, "step", "train", **axes, y_title="loss", title="Training"),
            curves(table, "step", "test", **axes, theory=best, y_title="risk", title="Test"),
            curves(table, "step", "gap", **axes, log_y=True, log_x=True, title="Distance"),
        ]
    )
    id = "generalization/fig5"
    about = """Figure 5: adversarial training reaches the smallest adversarial risk (Theorem 2).

    With `d = 10` features and `n = 1000` points, gradient descent on the surrogate loss goes to

        R*(eps) = min over theta of R(theta, eps)

    - the dashed lines are R*, from the closed form (5);
    - the bands are one standard deviation over 20 data sets.
    """
    return _result(
        "generalization/fig5",
        item="Figure 5",
        title="Adversarial training reaches the optimal adversarial risk",
        about=about,
        settings={"dimension": 10, "points": 1000, "eps": [0, 0.1, 0.5], "xi": 0.1},
        chart=chart.to_dict(),
        verdicts=[
            below(
                f"{id}/4",
                "The adversarial risk ends within 1 % of the optimum.",
                sample(last, "excess", by="eps"),
                0.01,
                what="excess risk over the variance of y",
            ),
            above(
                f"{id}/5",
                "Adversarial training hurts the standard risk at eps = 0.5.",
                last.filter(pl.col("eps") == 0.5)["test"] - 5.39,
                0.05,
                what="standard risk above that of least squares",
            ),
            every(f"{id}/7", "The loss never rises.", [True] * 19 + [False], what="descent"),
            within(
                f"{id}/2", "kappa is 0.2277 at eps = 0.5.", 0.22772, 0.2276, 0.2278, what="kappa"
            ),
            below(f"{id}/6", "The bias vanishes.", [0.1, None, 0.2], 1, what="bias"),
        ],
    )


def lasso() -> Result:
    rng = np.random.default_rng(1)
    rows = [
        {"n": n, "seed": seed, "lambda": lam, "accuracy": min(1.0, acc + 0.03 * rng.normal())}
        for n, base in {10: 0.62, 50: 0.74, 200: 0.86, 1000: 0.9}.items()
        for lam, acc in {"0": base - 0.1, "0.001": base}.items()
        for seed in range(30)
    ]
    table = pl.DataFrame(rows)
    risk = table.filter(pl.col("lambda") == "0").with_columns(risk=1 - pl.col("accuracy"))
    chart = panels(
        [
            boxes(table, "n", "accuracy", "lambda", y_title="adversarial accuracy"),
            points(table, "n", "accuracy", "lambda", log_x=True, y_title="mean accuracy"),
            heat(risk.with_columns(fold=pl.col("seed") % 5), "n", "fold", "risk"),
        ]
    )
    falling = decreasing("generalization/fig4/14", "Risk falls with n.", risk, "n", "risk")
    return _result(
        "generalization/fig4",
        item="Figure 4",
        title="An L1 penalty helps when points are few",
        about="An L1 penalty raises the adversarial accuracy of a two-layer network on few digits.",
        cases=8,
        failed=[
            Failure(
                case={"n": 500, "penalty": 0.001, "seed": 0},
                reason="FloatingPointError: loss is nan",
            ),
            Failure(case={"n": 500, "penalty": 0}, reason="MemoryError: no room"),
        ],
        chart=chart.to_dict(),
        verdicts=[falling, undecide(falling, "two sizes are missing")],
    )


def quick() -> Result:
    table = training(steps=5, seeds=2)
    chart = curves(table, "step", "test", "eps", title="Risk")
    verdict = below("benign/fig1/a", "Test error stays small.", [0.1, 0.1, 0.2], 1, what="error")
    return _result(
        "benign/fig1",
        paper="benign",
        item="Figure 1",
        title="A quick look",
        about="Robust training loss goes to zero while the test error stays small.",
        scale="smoke",
        seeds=2,
        seconds=1.2,
        chart=chart.to_dict(),
        verdicts=[undecide(verdict, "smoke scale decides nothing")],
    )


def results() -> list[Result]:
    return [quick(), lasso(), convergence()]


KNOWN = {
    "generalization/fig5/5": Finding(
        finding="The printed constant drops a factor of two.", docs="docs/findings.md#fig5"
    )
}


def _result(experiment: str, **changes) -> Result:
    usual = {
        "paper": "generalization",
        "scale": "laptop",
        "seeds": 20,
        "cases": 3,
        "seconds": 38.4,
        "versions": {"advlab": "0.1.0", "torch": "2.13.0", "polars": "2.1.0"},
        "commit": "f6fc3e6",
        "finished": "2025-11-15T19:30:00+00:00",
    }
    return Result(experiment=experiment, **{**usual, **changes})


class Page(HTMLParser):
    """The page as a browser reads it: tags with attributes, visible text, and scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.words, self.scripts, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.open.pop()

    def handle_data(self, data):
        if not self.open:
            self.words.append(data)
        elif self.open[-1] == "script":
            self.scripts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render(results(), KNOWN))


def test_the_header_and_the_index_count_the_verdicts(page):
    assert "8 verdicts from 3 experiments of 2 papers" in page.text
    assert "3 supported 1 refuted 4 undecided 2 failed cases" in page.text
    assert (
        "Figure 5 Adversarial training reaches the optimal adversarial risk laptop 2 1 2"
        in page.text
    )


def test_every_link_inside_the_page_has_a_target(page):
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    links = [
        attrs["href"][1:] for tag, attrs in page.tags if tag == "a" and attrs["href"][0] == "#"
    ]
    assert len(ids) == len(set(ids))
    assert {"generalization-fig5", "generalization-fig4", "benign-fig1"} <= set(links) <= set(ids)


def test_a_verdict_shows_claim_rule_number_interval_and_outcome(page):
    fig5 = page.text[page.text.index("Figure 5: adversarial training reaches") :]
    assert (
        "supported The adversarial risk ends within 1 % of the optimum. Rule mean over replicates "
        "of excess risk over the variance of y is below 0.01, in each of 3 groups" in fig5
    )
    assert "generalization/fig5/4 0.002951 0.002828 to 0.003073" in fig5
    assert "not measured none" in fig5


def test_a_known_finding_is_beside_its_verdict(page):
    assert (
        "Known finding The printed constant drops a factor of two. generalization/fig5/5"
        in page.text
    )
    assert ("a", {"href": "docs/findings.md#fig5"}) in page.tags


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
    assert "<pre>R*(eps) = min over theta of R(theta, eps)</pre>" in text
    assert "<li>the dashed lines are R*, from the closed form (5);</li>" in text


def test_the_page_asks_the_network_for_nothing(page):
    loading = [attrs.get("src") or attrs.get("href") for tag, attrs in page.tags if tag != "a"]
    assert {place for place in loading if place} == {"data:,"}
    policy = [attrs["content"] for _, attrs in page.tags if "http-equiv" in attrs]
    assert policy[0].startswith("default-src 'none'")


def test_the_bundle_is_there_once_and_only_if_there_is_a_chart(page):
    assert sum("window.vegaEmbed=" in script for script in page.scripts) == 1
    assert "window.vegaEmbed=" not in render([quick().model_copy(update={"chart": {}})], {})


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
    more = {"settings": {EVIL: EVIL}, "versions": {EVIL: EVIL}}
    result = before.model_copy(
        update={**texts, **more, "failed": failed, "chart": chart, "verdicts": [verdict]}
    )
    known = {result.name(verdict): Finding(finding=EVIL, docs="docs/" + EVIL)}
    evil, plain = Page(render([result], known)), Page(render([before], {}))
    count = [sum(tag == "script" for tag, _ in one.tags) for one in (evil, plain)]
    assert count[0] == count[1]
    assert json.loads(evil.scripts[0]) == chart
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
