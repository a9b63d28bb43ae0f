"""Numbers in sentences that come from stored results.

    python scripts/prose_numbers.py   # write them anew, and say which moved

A number is tied to its source by a comment behind it, which no reader sees:

    gives 55 %<!-- = purification/causality/remove --> of the gain, with an interval from
    52<!-- = 100 * low from purification/causality/remove --> to ...

- `= CLAIM`: the number that the tables show for a claim (`advlab.report.measured`).
- `= EXPRESSION from CLAIM`: SQL over one row: value, low, high; hits and n of a share of
  replicates; measured, what the rule judges.
- `= EXPRESSION from EXPERIMENT [where ... group by ...]`: SQL over the table in results/, one
  number. A table of which only every k-th row is kept is refused. Columns with blanks or colons
  stand in double quotes.

A number that a `python -c` of the same section prints has `<!-- printed -->`
behind it; `tests/test_docs.py` looks it up in the output.

The text says how it is rounded: the number keeps its decimals, and behind " %" it is in per cent.
`scripts/results.py` writes all of them, and a test compares them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl
import verdict_tables as tables

from advlab.lab import summary
from advlab.papers import EXPERIMENTS
from advlab.report.measured import measured

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
_MARK = re.compile(r"<!-- = .*? -->", re.DOTALL)
_COMMENT = re.compile(r"<!-- (?:= .*?|printed) -->", re.DOTALL)
_NUMBER = re.compile(
    r"(?P<number>[-−]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?)(?P<unit> %| per cent)?"
    r"(?P<mark><!-- = (?P<what>.*?) -->)",
    re.DOTALL,
)
_NAMES = sorted(EXPERIMENTS, key=len, reverse=True)
_SOURCE = re.compile(rf"(?P<select>.*\bfrom )?(?P<name>{'|'.join(_NAMES)})(?P<rest>(?![\w-]).*)")


class NoSource(ValueError):
    """A number cites what is not there, or what is no number."""


@dataclass(frozen=True)
class Number:
    """A number of a text.

    Args:
        line: where it stands.
        text: as it stands there.
        now: as its source has it.
        what: its source.
    """

    line: int
    text: str
    now: str
    what: str


def pages() -> list[Path]:
    """The pages whose numbers are read."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [*found, *sorted(tables.PAPERS.glob("*/README.md"))]


def numbers(text: str) -> Iterator[Number]:
    """All tied numbers of a text.

    Raises:
        NoSource: a source is not there, or a comment does not stand behind a number.
    """
    found = list(_NUMBER.finditer(text))
    if len(found) != len(_MARK.findall(text)):
        loose = {one.end() for one in _MARK.finditer(text)} - {one.end() for one in found}
        lines = sorted(text.count("\n", 0, end) + 1 for end in loose)
        raise NoSource(f"no number stands before the comment that ends in line {lines}")
    for one in found:
        what = " ".join(one["what"].split())
        line = text.count("\n", 0, one.start()) + 1
        yield Number(line, one["number"], rounded(value(what), one["number"], one["unit"]), what)


def written(text: str) -> str:
    """A text with its tied numbers as their sources have them."""
    fresh = iter([one.now for one in numbers(text)])
    return _NUMBER.sub(lambda one: f"{next(fresh)}{one['unit'] or ''}{one['mark']}", text)


def plain(text: str) -> str:
    """A text without the comments that tie its numbers."""
    return _COMMENT.sub("", text)


@cache
def value(what: str) -> float:
    """What a source says.

    Args:
        what: the inside of a comment, without its sign of equality.
    """
    found = _SOURCE.fullmatch(what)
    if found is None:
        raise NoSource(f"{what}: neither a claim nor EXPRESSION from EXPERIMENT")
    if found["rest"].startswith("/"):
        table, rest = _claim(found["name"] + found["rest"]), ""
    else:
        table, rest = _table(found["name"]), found["rest"]
        if not found["select"]:
            raise NoSource(f"{what}: which number of its table?")
    try:
        with pl.SQLContext({"t": table.lazy()}) as context:
            query = f"select {found['select'] or 'value from '}t{rest}"
            return float(context.execute(query, eager=True).item())
    except (pl.exceptions.PolarsError, ValueError, TypeError) as error:
        raise NoSource(f"{what}: {error}") from None


@cache
def _table(experiment: str) -> pl.DataFrame:
    kept = summary.read(RESULTS / f"{experiment}.parquet")
    if kept.every > 1:
        raise NoSource(f"{experiment}: only every {kept.every}th row of its table is kept")
    return kept.table


@cache
def _claims(paper: str) -> dict[str, pl.DataFrame]:
    found = {}
    for id, verdict in tables.verdicts(paper).items():
        one = measured(verdict)
        row = {"value": one.value, "low": one.low, "high": one.high, "measured": verdict.measured}
        share = {"hits": round((one.value or 0) * one.of), "n": one.of}
        found[id] = pl.DataFrame([row | share], schema_overrides=dict.fromkeys(row, pl.Float64))
    return found


def _claim(id: str) -> pl.DataFrame:
    found = _claims(id.partition("/")[0])
    if id not in found:
        raise NoSource(f"{id}: no stored verdict has this name")
    return found[id]


def rounded(number: float, like: str, unit: str | None) -> str:
    """A number with the decimals, the power of ten and the unit of another.

    Args:
        number: what to write.
        like: the number that stands there.
        unit: what follows it; per cent if it is not empty.
    """
    number = 100 * number if unit else number
    digits, power, _ = like.partition("e")
    decimals = len(digits.partition(".")[2])
    if power:
        return re.sub(r"e([-+])0*", lambda one: "e-" if one[1] == "-" else "e",
                      f"{number:.{decimals}e}")  # fmt: skip
    text = f"{number:{',' if ',' in like or abs(number) >= 10_000 else ''}.{decimals}f}"
    text = text.removeprefix("-") if float(text.replace(",", "")) == 0 else text
    return text.replace("-", "−") if "−" in like else text


def main() -> None:
    """Write all numbers anew, and say which moved."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        for one in numbers(text):
            if one.text != one.now:
                where = f"{path.relative_to(ROOT)}:{one.line}"
                print(f"{where}: {one.text} is {one.now} now ({one.what})")
        path.write_text(written(text), encoding="utf-8")


if __name__ == "__main__":
    main()
