"""The summary of a store: of each experiment one parquet file, small enough for a repository.

It holds the experiment's table, of a long one every k-th row, and as metadata the result, the keys
of its cases and the code that computed them; also its chart, where the table that is kept cannot
draw it. `compare` holds a new run against it: which verdicts moved, which numbers. `outdated` says
whether today's recipe and code are those it was made with.
"""

import base64
import io
import json
import lzma
import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..core.errors import AdvlabError
from ..core.files import replacing, sha256
from ..report import Result
from ..report.compact import rounded
from ..report.comparison import Pair, Row, compared
from .store import Corrupt, read_record
from .sweep import with_settings

LARGEST = 60_000
"""Bytes of a table that is kept whole; of a larger one only every k-th row is."""
_SAME = 1e-9
_ROUNDING = 1e-12
"""Numbers that are no further apart are the same, however small they are: what is left of an
identity in float64 is another 1e-16 in every run."""
_LONGEST = 200
_LEFT_OUT = {"chart", "runs", "about", "source", "made_by"}


@dataclass(frozen=True)
class Summary:
    """What a run found, small.

    Args:
        result: the result without its runs, and with a chart only if the table cannot draw it.
        table: its rows, every `every`-th.
        every: 1 if all rows are there.
        rows: how many there were.
        cases: the keys of its cases; none where they are not known.
        code: the fingerprints of what computed them; none where they are not known.
    """

    result: Result
    table: pl.DataFrame
    every: int
    rows: int
    cases: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Moved:
    """A new run beside the summary of the old one.

    Args:
        pair: the claims of both (`report.comparison`).
        different: of each column of the table, the share of its cells that differ by more than
            rounding, and the largest relative difference; only columns with such cells.
        note: why tables could not be compared, or nothing.
        made: how the runs were made otherwise: other cases, other code.
    """

    pair: Pair
    different: dict[str, tuple[float, float]]
    note: str = ""
    made: tuple[str, ...] = ()

    @property
    def verdicts(self) -> int:
        """How many verdicts became others, or are gone."""
        return sum(row.change in ("outcome", "only in A") for row in self.pair.rows)

    @property
    def numbers(self) -> int:
        """How many claims with the same verdict have another number, up to rounding."""
        return sum(map(number_moved, self.pair.rows))


def number_moved(row: Row) -> bool:
    """Whether a claim has the same verdict and another number, up to rounding."""
    if row.a is None or row.b is None or row.a.outcome != row.b.outcome:
        return False
    ends = ("measured", "low", "high")
    numbers = [(getattr(row.a, end), getattr(row.b, end)) for end in ends]
    far = [_distance(*both) > _SAME for both in numbers]
    return far[0] or (row.change == "number" and any(far))


def results(store: Path, scales: tuple[str, ...] = ("laptop",)) -> Iterator[tuple[Result, Path]]:
    """The results of a folder of runs, with the folder of each.

    Args:
        store: what `advlab run --out` wrote.
        scales: those that are wanted.

    Raises:
        Corrupt: a result is damaged.
    """
    for path in sorted(store.rglob("result-*.json")):
        try:
            result = Result.read(path.read_bytes())
        except ValueError as error:
            raise Corrupt(f"a whole result in {path}", " ".join(str(error).split())) from None
        if result.scale in scales:
            yield result, path.parent


def table(result: Result, folder: Path) -> pl.DataFrame:
    """The table that a result was decided on, from its runs; nothing is computed.

    Args:
        result: of `folder/result-<scale>.json`.
        folder: its runs.

    Raises:
        Corrupt: a run is gone or damaged.
    """
    parts = [_rows(folder / key) for key in result.runs]
    return pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame()


def _rows(run: Path) -> pl.DataFrame:
    try:
        wanted = read_record((run / "run.json").read_bytes())["sha256"]
        files = {name: (run / name).read_bytes() for name in ("case.json", "metrics.parquet")}
        for name, data in files.items():
            if sha256(data) != wanted[name]:
                raise ValueError(f"{name} is not what was written")
        rows = pl.read_parquet(io.BytesIO(files["metrics.parquet"]))
        return with_settings(rows, json.loads(files["case.json"]))
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError) as error:
        raise Corrupt(f"a whole run in {run}", " ".join(str(error).split())) from None


def write(result: Result, rows: pl.DataFrame, path: Path) -> None:
    """Write the summary of one experiment.

    Columns of lists, and texts that are pictures, are left out. The chart is kept if rows or
    columns are left out.

    Args:
        result: what the run found.
        rows: its table.
        path: the parquet file.

    Example:
        from pathlib import Path
        from advlab.lab.summary import table, write
        write(result, table(result, folder), Path("results") / f"{result.experiment}.parquet")
    """
    kept = _plain(rows)
    size = len(_parquet(kept, {}))
    every = 1 if size <= LARGEST else _prime(math.ceil(size / LARGEST))
    about = {"result": kept_result(result), "every": every, "rows": rows.height}
    about |= {"cases": sorted(_cases(result)), "code": sorted(_code(result))}
    texts = {"advlab": json.dumps(about, ensure_ascii=False, separators=(",", ":"))}
    if result.chart and (every > 1 or kept.width < rows.width):
        texts["chart"] = _packed(result.chart)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new:
        new.write_bytes(_parquet(kept.gather_every(every), texts))


def read(path: Path) -> Summary:
    """What `write` wrote.

    Raises:
        AdvlabError: it is no such file.
    """
    try:
        texts = pl.read_parquet_metadata(path)
        about = json.loads(texts["advlab"])
        rows, found = pl.read_parquet(path), whole_result(about["result"])
        if "chart" in texts:
            found = found.model_copy(update={"chart": _unpacked(texts["chart"])})
        cases, code = (frozenset(about.get(name, ())) for name in ("cases", "code"))
        return Summary(found, rows, int(about["every"]), int(about["rows"]), cases, code)
    except (OSError, ValueError, KeyError, lzma.LZMAError, pl.exceptions.PolarsError) as error:
        raise AdvlabError(f"the summary of an experiment in {path}", error) from None


def compare(old: Summary, result: Result, rows: pl.DataFrame) -> Moved:
    """Hold a new run against a summary.

    Args:
        old: from `read`.
        result: what the new run found.
        rows: its table.
    """
    (pair,) = compared([old.result], [result])
    made = tuple(_made_otherwise(old, _cases(result), _code(result)))
    if rows.height != old.rows:
        return Moved(pair, {}, f"{rows.height} rows, not {old.rows}: other settings", made)
    here = _plain(rows).gather_every(old.every)
    gone = [name for name in old.table.columns if name not in here.columns]
    found = {
        name: difference
        for name in old.table.columns
        if name not in gone and (difference := _difference(old.table[name], here[name]))[0]
    }
    return Moved(pair, found, f"columns that are gone: {', '.join(gone)}" if gone else "", made)


def outdated(old: Summary, cases: Iterable[str], code: str | None) -> list[str]:
    """How a summary was made otherwise than today's recipe and code would make it, in words.

    Args:
        old: from `read`.
        cases: the keys of the recipe's cases.
        code: the fingerprint of the code that would compute them; None if nobody can say.

    Example:
        from pathlib import Path
        from advlab import lab
        from advlab.lab.summary import outdated, read
        recipe = lab.load("generalization/fig5")
        keys = [case.key() for case in recipe.cases("laptop")]
        outdated(read(Path("results/generalization/fig5.parquet")), keys, recipe.code("laptop"))
    """
    return list(_made_otherwise(old, {*cases}, {code} if code else set()))


def _made_otherwise(old: Summary, cases: Set[str], code: Set[str]) -> Iterator[str]:
    """What is not as it was when a summary was made; what is not known is said too."""
    if not old.cases or not old.code:
        yield "not recorded: of which cases the summary is, and by which code"
        return
    if cases and cases != old.cases:
        both = len(cases & old.cases)
        yield f"other cases: {both} of the summary's {len(old.cases)}, and {len(cases) - both} more"
    if code and code != old.code:
        was, now = (", ".join(sorted(one)) for one in (old.code, code))
        yield f"computed by other code: {was} in the summary, {now} here"


def _cases(result: Result) -> set[str]:
    """The keys of the cases of a result, those that failed included."""
    failed = (json.dumps(one.case, sort_keys=True, separators=(",", ":")) for one in result.failed)
    return {*result.runs} | {sha256(text.encode())[:16] for text in failed}


def _code(result: Result) -> set[str]:
    return {maker.code for maker in result.made_by}


def kept_result(result: Result) -> dict[str, Any]:
    """A result without charts and runs; a scope that all its verdicts share stands once."""
    whole = result.model_dump(mode="json", exclude=_LEFT_OUT)
    scopes = [verdict.pop("scope") for verdict in whole["verdicts"]]
    whole["scope"] = scopes[0] if scopes else {}
    for verdict, own in zip(whole["verdicts"], scopes, strict=True):
        if own != whole["scope"]:
            verdict["scope"] = own
    return whole


def whole_result(kept: Mapping[str, Any]) -> Result:
    """The result that `kept_result` made smaller, as far as it was kept."""
    scope = kept["scope"]
    verdicts = [{"scope": scope, **one} if scope else one for one in kept["verdicts"]]
    rest = {name: value for name, value in kept.items() if name not in ("scope", "verdicts")}
    return Result(**{"about": "", **rest, "verdicts": verdicts})


def _plain(rows: pl.DataFrame) -> pl.DataFrame:
    """The columns of numbers, answers and short words."""
    return rows.select(
        name
        for name, kind in rows.schema.items()
        if kind.is_numeric()
        or kind in (pl.Boolean, pl.Null)
        or (kind == pl.String and not (rows[name].str.len_bytes() > _LONGEST).any())
    )


def _parquet(rows: pl.DataFrame, about: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    rows.write_parquet(buffer, compression="zstd", compression_level=19, metadata=about)
    return buffer.getvalue()


def _packed(chart: Mapping[str, Any]) -> str:
    text = json.dumps(rounded(chart), ensure_ascii=False, separators=(",", ":"))
    return base64.b85encode(lzma.compress(text.encode(), preset=9)).decode()


def _unpacked(text: str) -> dict[str, Any]:
    return json.loads(lzma.decompress(base64.b85decode(text)))


def _prime(at_least: int) -> int:
    """The next prime: every k-th row then meets all values of what repeats in the rows."""
    number = max(2, at_least)
    while any(number % factor == 0 for factor in range(2, math.isqrt(number) + 1)):
        number += 1
    return number


def _difference(old: pl.Series, new: pl.Series) -> tuple[float, float]:
    """The share of cells that differ, and the largest relative difference."""
    if not (old.dtype.is_numeric() and new.dtype.is_numeric()):
        share = old.cast(pl.String).ne_missing(new.cast(pl.String)).mean()
        return float(share or 0.0), math.inf if share else 0.0  # pyright: ignore[reportArgumentType]
    a, b = (one.cast(pl.Float64).to_numpy() for one in (old, new))
    large = np.maximum(np.abs(a), np.abs(b))
    scale = np.maximum(large, 1e-6 * np.nanmax(large, initial=0.0))  # what is nearly 0 is rounding
    with np.errstate(invalid="ignore", divide="ignore"):
        near = np.abs(a - b) <= _ROUNDING
        far = np.where(near | (a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b) / scale)
    far = np.nan_to_num(far, nan=math.inf, posinf=math.inf)
    return float((far > _SAME).mean()), float(far.max(initial=0.0))


def _distance(a: float | None, b: float | None) -> float:
    if a is None or b is None:
        return 0.0 if a is b else math.inf
    if a == b or abs(a - b) <= _ROUNDING or (math.isnan(a) and math.isnan(b)):
        return 0.0
    distance = abs(a - b) / max(abs(a), abs(b))
    return math.inf if math.isnan(distance) else distance
