"""A sweep computes the cases that have no run yet, on all cores, and reads every run back."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from ..core.errors import AdvlabError
from ..report import Failure
from .backends import Engine, EngineName
from .backends import engine as engine_of
from .case import Case, Computed
from .loader import find
from .progress import Progress
from .store import Corrupt, Store, Stored, encode
from .threads import one_thread

State = Literal["stored", "computed", "failed", "busy"]


@dataclass(frozen=True)
class Swept:
    """The rows of every case that has a run, the cases that have none, and the compute time."""

    table: pl.DataFrame
    failed: list[Failure]
    seconds: float


def sweep(
    cases: Sequence[Case],
    compute: Callable[[Any], pl.DataFrame | Computed],
    folder: Path | str,
    *,
    jobs: int | None = None,
    fresh: bool = False,
    source: str | None = None,
    engine: EngineName = "local",
    address: str | None = None,
) -> Swept:
    """Give every case a run in `folder`, computing only what is missing, and read them all.

    The table depends on the cases alone: not on `jobs` (default: the number of cores), nor on the
    engine ("ray" has an `address`, and its workers must see `folder` under the same path), nor how
    often the sweep was stopped, nor on other processes that work in the same folder. A case whose
    compute raises is stored as failed and tried again next time. `fresh` forgets the runs first.
    `source` names the file that `compute` comes from where workers cannot import it by name.
    """
    where = engine_of(engine, jobs, address)
    store = Store(Path(folder).absolute())
    by_key = {case.key(): case for case in cases}
    if len(by_key) < len(cases):
        raise AdvlabError("cases that differ from each other", "two cases with the same settings")
    store.open()
    if fresh:
        for case in cases:
            store.discard(case)
    runs: dict[str, Stored] = {}
    for key, case in by_key.items():
        try:
            run = store.read(case)
        except Corrupt as error:
            _say(f"corrupt run, moved to {store.root / 'corrupt'} and computed again: {error}")
            continue
        if run:
            runs[key] = run
            store.forget_failure(case)
    missing = [case for key, case in by_key.items() if key not in runs]
    if missing:
        _compute(missing, compute, store, where, source, stored=len(runs))
    return _collect(cases, store, runs)


def _compute(
    missing: list[Case],
    compute: Callable[[Any], pl.DataFrame | Computed],
    store: Store,
    where: Engine,
    source: str | None,
    stored: int,
) -> None:
    # Longest first: a long case that starts last would leave the other workers idle.
    todo = {case.key(): case for case in sorted(missing, key=lambda case: -case.cost)}
    with Progress(store.root.name, missing, stored) as progress:
        try:
            # What another process is computing is left for last, then waited for.
            for wait in (False, True):
                if wait and todo:
                    progress.say(f"waiting for {len(todo)} cases that another process computes")
                calls = [(_Import(source), compute, case, store, wait) for case in todo.values()]
                with closing(where.outcomes(_settle, calls)) as outcomes:
                    for key, state in outcomes:
                        if state != "busy":
                            progress.settled(todo.pop(key), failed=state == "failed")
            store.clean()  # of workers that were killed and replaced
        except BaseException as error:
            with suppress(AdvlabError):
                store.clean(timeout=2.0)
            if isinstance(error, KeyboardInterrupt):
                done, total = stored + sum(map(store.has, missing)), stored + len(missing)
                progress.say(f"stopped: {done} of {total} cases are stored; run it again to go on")
            raise


class _Import:
    """Pickled before the arguments that refer to an experiment's file: it imports that file."""

    def __init__(self, source: str | None):
        self.source = source

    def __reduce__(self):
        return (_imported, (self.source,))


def _imported(source: str | None) -> _Import:
    if source is not None:
        find(source)
    return _Import(source)


def _settle(
    _: _Import,
    compute: Callable[[Any], pl.DataFrame | Computed],
    case: Case,
    store: Store,
    wait: bool,
) -> tuple[str, State]:
    key = case.key()
    with store.lock(key, -1.0 if wait else 0.0) as mine:
        if not mine:
            return key, "busy"
        try:
            if store.read(case):
                return key, "stored"
        except Corrupt:
            store.set_aside(case)
        start = time.perf_counter()
        try:
            with one_thread():
                files = encode(compute(case))
        except Exception as error:
            store.write_failure(case, error)
            return key, "failed"
        store.write(case, files, time.perf_counter() - start)
        return key, "computed"


def _collect(cases: Iterable[Case], store: Store, runs: dict[str, Stored]) -> Swept:
    tables, failed, seconds = [], [], 0.0
    for case in cases:
        run = runs.get(case.key()) or store.read(case)
        if run is None:
            reason = store.failure(case) or "its run was removed while the sweep went on"
            failed.append(Failure(case=case.model_dump(mode="json"), reason=reason))
            continue
        tables.append(_with_settings(run.table, case))
        seconds += run.seconds
    table = pl.concat(tables, how="diagonal_relaxed") if tables else pl.DataFrame()
    return Swept(table, failed, seconds)


_TYPES = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String, type(None): pl.Null}


def _with_settings(table: pl.DataFrame, case: Case) -> pl.DataFrame:
    """The case's scalar settings as columns before its rows; a row's own column goes first."""
    settings = [
        pl.lit(value, dtype=_TYPES[type(value)]).alias(name)
        for name, value in case.model_dump().items()
        if type(value) in _TYPES and name not in table.columns
    ]
    return table.select(*settings, pl.all())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
