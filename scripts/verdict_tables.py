"""The tables of verdicts in the papers' README files and in CHANGELOG.md, from stored results.

    python scripts/verdict_tables.py RUNS   # take the results of a folder of runs, then write
    python scripts/verdict_tables.py        # write the tables again

`scripts/results.py take RUNS` does this, and takes the pictures and the summary too.

Results are kept, without charts, in papers/<paper>/verdicts.json; results of other experiments stay
as they are. Nobody types a number: a test renders the tables again and compares them. What changed
is listed from papers/<paper>/changes.toml, which holds each former verdict and why it is another.
"""

import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from advlab import lab
from advlab.lab.summary import kept_result
from advlab.papers import EXPERIMENTS
from advlab.report import Result, Verdict
from advlab.report.formatting import plural, scope, scope_parts
from advlab.report.measured import measured as quantity
from advlab.report.measured import shown
from advlab.report.page import KINDS, OUTCOMES

ROOT = Path(__file__).parent.parent
PAPERS = ROOT / "src" / "advlab" / "papers"
SCALES = ("laptop", "paper")
"""A smoke run decides nothing and has no place in a table."""

WAITS, GONE = "not run anew yet", "withdrawn"
"""What became of a changed claim that has no verdict now."""
SAME = "Rules or words that changed while the outcome stayed:"

SAMPLE = "generalization/fig5/4a"
"""The verdict that docs/start.md explains."""


def papers() -> list[str]:
    """The papers, in the order of the registry."""
    return list(dict.fromkeys(name.split("/")[0] for name in EXPERIMENTS))


def take(runs: Path) -> None:
    """Put the results of a folder of runs into verdicts.json of their papers."""
    found = {}
    for path in sorted(runs.rglob("result-*.json"), key=lambda path: path.name):
        result = Result.read(path.read_bytes())
        if result.scale in SCALES and result.experiment in EXPERIMENTS:
            found[result.experiment] = result  # "paper" comes after "laptop"
    for paper in papers():
        known = {one["experiment"]: one for one in stored(paper)}
        known |= {name: kept_result(one) for name, one in found.items() if one.paper == paper}
        rows = [known[name] for name in EXPERIMENTS if name in known]
        text = json.dumps(rows, indent=1, ensure_ascii=False)
        (PAPERS / paper / "verdicts.json").write_text(text + "\n", encoding="utf-8")


def stored(paper: str) -> list[dict[str, Any]]:
    """What verdicts.json of a paper holds."""
    path = PAPERS / paper / "verdicts.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def verdicts(paper: str) -> dict[str, Verdict]:
    """The verdicts of a paper by their full ids."""
    return {
        f"{result['experiment']}/{one['id']}": Verdict(**{"scope": result["scope"], **one})
        for result in stored(paper)
        for one in result["verdicts"]
    }


def claimed(paper: str) -> set[str]:
    """The full ids of all claims of a paper."""
    names = [name for name in EXPERIMENTS if name.startswith(paper + "/")]
    return {f"{name}/{label}" for name in names for label in lab.load(name).about.claims}


def now(paper: str) -> dict[str, str]:
    """What became of each verdict that changed: its outcome, no run yet, or withdrawn."""
    found, here = verdicts(paper), claimed(paper)
    return {
        id: found[id].words if id in found else WAITS if id in here else GONE
        for id in changes(paper)
    }


def changes(paper: str) -> dict[str, dict[str, str]]:
    """Former verdicts by id, each with `before` and `why`."""
    path = PAPERS / paper / "changes.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def table(paper: str) -> str:
    """Counts by kind, a line per experiment with its scope, and all verdicts."""
    lines = counts(paper)
    for result in stored(paper):
        lines += ["", *facts(result), "", *rows(result)]
    known = {result["experiment"] for result in stored(paper)}
    mine = (name for name in EXPERIMENTS if name.startswith(paper + "/"))
    left = ", ".join(f"`{name}`" for name in mine if name not in known)
    if left:
        lines += ["", f"Not run anew at laptop scale since rules changed: {left}."]
    return "\n".join(lines)


def counts(*of: str) -> list[str]:
    """How many claims of some papers were decided how, by kind."""
    found = [one for paper in of for one in verdicts(paper).values()]
    lines = ["| kind | " + " | ".join(OUTCOMES) + " |", "|---" * (1 + len(OUTCOMES)) + "|"]
    for kind, words in KINDS.items():
        each = [one for one in found if one.kind == kind]
        counted = (str(sum(one.outcome == name for one in each)) for name in OUTCOMES)
        if each:
            lines.append(f"| {kind} ({words}) | " + " | ".join(counted) + " |")
    return lines


def facts(result: Mapping[str, Any]) -> list[str]:
    """What ran, and the scope that its verdicts share."""
    return [f"**`{result['experiment']}`** ({ran(result)}). {'; '.join(reached(result))}".rstrip()]


def ran(result: Mapping[str, Any]) -> str:
    """Scale, seeds and commit. Seconds depend on the machine, and on what else it does."""
    commit, _, changed = result["commit"].partition("-")
    commit = f"{commit[:12]}{' with changes' if changed else ''}"
    return f"{result['scale']} scale, {plural(result['seeds'], 'seed')}, commit {commit}"


def reached(result: Mapping[str, Any]) -> list[str]:
    """The scope that the verdicts share: assumptions, what was reduced, earlier looks."""
    nothing = {"id": "", "claim": "", "outcome": "undecided", "measured": None, "rule": ""}
    return scope_parts(Verdict(**nothing, scope=result["scope"]))


def rows(result: Mapping[str, Any]) -> list[str]:
    """The verdicts of one experiment as a table."""
    lines = ["| claim | kind | what is claimed | measured | outcome |", "|---|---|---|---|---|"]
    for each in result["verdicts"]:
        one = Verdict(**{"scope": result["scope"], **each})
        found = quantity(one)
        what = f"<br><sub>{in_cell(found.what)}</sub>" if found.what else ""
        cells = (f"`{one.id}`", one.kind, claim(one, result), shown(found) + what, outcome(one))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def claim(verdict: Verdict, result: Mapping[str, Any]) -> str:
    """What is claimed, with its scope where that is not what the other claims have."""
    own = verdict.scope.model_dump(mode="json") != result["scope"]
    return in_cell(f"{verdict.claim} ({scope(verdict)})" if own else verdict.claim)


def in_cell(text: str) -> str:
    """Words in a table of Markdown."""
    return text.replace("|", "\\|")


def measured(verdict: Verdict) -> str:
    """What the rule judges, and its interval."""
    if verdict.measured is None:
        return "-"
    value = f"{verdict.measured:.4g}"
    if verdict.low is None or verdict.high is None or verdict.low == verdict.high:
        return value
    return f"{value} [{verdict.low:.4g}, {verdict.high:.4g}]"


def outcome(verdict: Verdict) -> str:
    """The outcome, set apart where it is not `supported`."""
    marks = {"supported": "", "refuted": "**", "undecided": "*", "outside": "*"}
    mark = marks[verdict.outcome]
    return f"{mark}{verdict.words}{mark}"


def moved(paper: str) -> dict[str, bool]:
    """Of each verdict that `changes` lists, whether its outcome is another than it was.

    A claim that had no verdict before has moved, and so has one that was withdrawn; one that was
    not run anew has not.
    """
    after, before = now(paper), changes(paper)
    return {id: _outcome(one["before"]) != _outcome(after[id]) and after[id] != WAITS
            for id, one in before.items()}  # fmt: skip


def _outcome(words: str) -> str:
    """The outcome at the beginning of "supported at this size, 0.4 [0.3, 0.5]"."""
    return next((one for one in (*OUTCOMES, GONE) if words.startswith(one)), "none")


def changed(paper: str) -> str:
    """Outcomes that are not what they were, with the reason; then rules that changed otherwise."""
    there = moved(paper)
    parts = []
    for is_moved, words in ((True, "Outcomes that moved:"), (False, SAME)):
        ids = [id for id, one in there.items() if one is is_moved]
        if ids:
            parts.append("\n".join([words, "", *_changes(paper, ids)]))
    return "\n\n".join(parts)


def _changes(paper: str, ids: list[str]) -> Iterator[str]:
    found, after, before = verdicts(paper), now(paper), changes(paper)
    yield "| claim | before | now | why |"
    yield "|---|---|---|---|"
    for id in ids:
        value = f", {measured(found[id])}" if id in found else ""
        why = in_cell(before[id]["why"])
        yield f"| `{id}` | {before[id]['before']} | {after[id]}{value} | {why} |"


def listed() -> str:
    """Moved outcomes for the changelog: before and now; the reasons are in the papers' pages."""
    lines = []
    for paper in papers():
        there, after, before = moved(paper), now(paper), changes(paper)
        rest = len(there) - sum(there.values())
        if before:
            also = f"; the rules of {rest} more changed, their outcomes did not" if rest else ""
            lines.append(f"- {paper}, reasons in src/advlab/papers/{paper}/README.md{also}:")
        for id, one in before.items():
            if there[id]:
                lines.append(f"  - `{id}`: {one['before'].split(',')[0]} -> {after[id]}")
    return "\n".join(lines)


def written(text: str, sections: Mapping[str, str]) -> str:
    """A text with the parts between `<!-- name -->` and `<!-- /name -->` made new."""
    for name, body in sections.items():
        opened, closed = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        between = re.compile(re.escape(opened) + ".*?" + re.escape(closed), re.DOTALL)
        whole = f"{opened}{body}\n{closed}"
        text = between.sub(lambda _, whole=whole: whole, text)
    return text


def sample(id: str) -> str:
    """A verdict as `advlab run --verbose` prints it."""
    one = verdicts(id.split("/")[0])[id]
    found = quantity(one)
    rule = textwrap.wrap(f"measured {shown(found)}; rule: {found.rule}", 85)
    lines = [
        f"{one.outcome}  {one.id}  {one.claim}  ({one.kind})",
        *(f"    {line}" for line in rule),
    ]
    return "\n".join(["```text", *lines, "```"])


def pages() -> dict[Path, str]:
    """Every page with such tables, as it should be."""
    found = {
        PAPERS / paper / "README.md": {"verdicts": table(paper), "changes": changed(paper)}
        for paper in papers()
    }
    found[ROOT / "CHANGELOG.md"] = {"verdict changes": listed()}
    found[ROOT / "docs" / "start.md"] = {f"verdict {SAMPLE}": sample(SAMPLE)}
    return {path: written(path.read_text(encoding="utf-8"), parts) for path, parts in found.items()}


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        take(Path(folder))
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
