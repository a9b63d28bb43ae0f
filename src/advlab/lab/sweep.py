"""A sweep computes the cases that have no run yet, on all cores, and reads every run back."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeGuard

import polars as pl

try:
    import resource
except ImportError:  # there is none on Windows
    resource = None

from ..core.datafiles import DataChanges, recording
from ..core.errors import AdvlabError
from ..core.fingerprint import code_fingerprint
from ..report import Failure, Maker
from .backends import Backend, BackendName
from .backends import backend as backend_of
from .case import Case, Computed
from .loader import find
from .local import Limits, Lost
from .progress import SweepProgress
from .shared import sharing
from .store import Corrupt, ReadOnly, Store, Stored, encode
from .threads import one_thread

State = Literal["stored", "computed", "failed", "busy"]
_SHOWN = 4


@dataclass(frozen=True)
class Swept:
    """The rows of every case that has a run, the cases that have none, and what computing took.

    `seconds` and `cpu` are sums over runs, 0 where a run has none recorded; `memory` is the most
    that one process held. `runs` are the runs behind the rows, as keys and checksums; `made_by`
    says what computed them.
    """

    table: pl.DataFrame
    failed: list[Failure]
    seconds: float
    cpu: float = 0.0
    memory: int = 0
    runs: dict[str, str] = field(default_factory=dict)
    made_by: list[Maker] = field(default_factory=list)


def sweep(
    cases: Sequence[Case],
    compute: Callable[[Any], pl.DataFrame | Computed],
    folder: Path | str,
    *,
    jobs: int | None = None,
    fresh: bool = False,
    reuse: bool = False,
    source: str | None = None,
    backend: BackendName = "local",
    address: str | None = None,
    timeout: float | None = None,
    memory: int | None = None,
    retries: int = 1,
    pace: float = 0.0,
    progress: bool = True,
) -> Swept:
    """Give every case a run in `folder`, computing only what is missing, and read them all.

    The table depends on the cases and the code alone: not on `jobs`, nor on the backend, nor on how
    often the sweep was stopped, nor on other processes that work in the same folder. A case whose
    compute raises, kills its worker or takes too much is stored as failed and tried again next
    time. A run that other code computed (`core.fingerprint.code_fingerprint`), or that was made
    from data files with other content than those that are here now (`core.datafiles`), is computed
    again. Where the data files are not here, runs are kept.

    Args:
        cases: settings that differ from each other, one run per case.
        compute: gives the rows of a case, or `lab.Computed` with arrays too.
        folder: where the runs are kept.
        jobs: worker processes; as many as there are cores if left out. With 1 and no limit, cases
            are computed in this process.
        fresh: forget the runs of these cases first.
        reuse: keep runs that other code computed, or that were made from other data.
        source: the file or module that `compute` comes from, where workers cannot import it by
            the name of its module.
        backend: "local", or "ray", whose workers must see `folder` under the same path.
        address: the Ray cluster to join.
        timeout: seconds that a case may take; with "local" only, as `memory`.
        memory: bytes that the process of a case may hold in memory.
        retries: how often a case is tried again, after the others, when its worker was killed.
        pace: seconds of a case of cost 1, to say how long what is missing takes.
        progress: whether to say how far it is; problems are told in any case.

    Returns:
        The table of all cases in their order, what failed, and the seconds of computing.

    Example:
        from advlab.lab import Case, sweep

        class Size(Case):
            size: int

        swept = sweep([Size(size=n) for n in (10, 20)], compute, "runs/sizes", jobs=2)
    """
    where = backend_of(backend, jobs, address, Limits(timeout, memory, retries))
    store = Store(Path(folder).absolute())
    by_key = {case.key(): case for case in cases}
    if len(by_key) < len(cases):
        raise AdvlabError("cases that differ from each other", "two cases with the same settings")
    kinds = tuple(sorted({type(case) for case in cases}, key=lambda kind: kind.__qualname__))
    work = _Work(_Import(source), compute, kinds, code_fingerprint(compute, *kinds), store, reuse)
    refused = _refused(store)
    if fresh:
        for case in cases:
            store.discard(case)
    runs = _stored(by_key, work)
    missing = [case for key, case in by_key.items() if key not in runs]
    if missing:
        try:
            if refused:
                raise refused
            shown = SweepProgress(store.root.name, missing, len(runs), pace, progress)
            _compute(missing, work, where, shown)
        except ReadOnly:  # a finished store can be read, with its failures as they are recorded
            if not all(store.failure(case) for case in missing):
                raise
    return _collect(cases, work, runs)


def _refused(store: Store) -> ReadOnly | None:
    """Open the store; if nothing may be written there, why. What is complete can still be read."""
    try:
        store.open()
    except ReadOnly as error:
        return error
    return None


def _stored(by_key: Mapping[str, Case], work: "_Work") -> dict[str, Stored]:
    """The runs that need no computing."""
    runs: dict[str, Stored] = {}
    other, store, data = 0, work.store, _DataCheck()
    for key, case in by_key.items():
        try:
            run = store.read(case, arrays=False)
        except Corrupt as error:
            _say(f"corrupt run, moved to {store.root / 'corrupt'} and computed again: {error}")
            continue
        if run is None:
            continue
        other += run.code != work.code
        same = data.is_same(run)
        if work.reuse or (run.code == work.code and same):
            runs[key] = run
            with suppress(ReadOnly):
                store.forget_failure(case)
    then = "kept, as --reuse asks" if work.reuse else "computed again (--reuse keeps them)"
    if other:
        _say(f"{store.root.name}: computed by other code: {_runs(other)}, {then}")
    for line in data.lines(then):
        _say(f"{store.root.name}: {line}")
    return runs


class _DataCheck:
    """Are runs made from the data files that are here now? Counts those that are not."""

    def __init__(self) -> None:
        self.found: dict[str, DataChanges] = {}
        self.runs: Counter[str] = Counter()

    def is_same(self, run: Stored) -> bool:
        """Whether nothing that a run read has changed; what is not here now does not count."""
        if not run.data:
            return True
        text = json.dumps(run.data, sort_keys=True)
        if text not in self.found:
            self.found[text] = _data_changes(run)
        self.runs[text] += 1
        return not self.found[text].changed

    def lines(self, then: str) -> Iterator[str]:
        """What to say of the runs whose data changed, and of those whose data are not here."""
        changed = {text: many for text, one in self.found.items() if (many := one.changed)}
        if changed:
            names = _listed([name for many in changed.values() for name in many])
            count = _runs(sum(self.runs[text] for text in changed))
            yield f"made from other data: {names} changed: {count}, {then}"
        missing = {
            text: one.missing
            for text, one in self.found.items()
            if one.missing and text not in changed
        }
        if missing:
            names = _listed([name for many in missing.values() for name in many])
            count = _runs(sum(self.runs[text] for text in missing))
            yield f"made from data that are not here now ({names}): {count}, kept"


def _data_changes(run: Stored) -> DataChanges:
    if not run.data:
        return DataChanges()
    from ..data.recorded import changes  # it imports torch, as whatever reads data does

    return changes(run.data)


def _listed(names: Sequence[str]) -> str:
    once = list(dict.fromkeys(names))
    more = f" and {len(once) - _SHOWN} more" if len(once) > _SHOWN else ""
    return ", ".join(once[:_SHOWN]) + more


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"


def _compute(missing: list[Case], work: "_Work", where: Backend, shown: SweepProgress) -> None:
    store = work.store
    # Longest first: a long case that starts last would leave the other workers idle.
    todo = {case.key(): case for case in sorted(missing, key=lambda case: -case.cost)}
    with shown as progress:
        try:
            # What another process is computing is left for last, then waited for.
            for wait in (False, True):
                if wait and todo:
                    progress.say(f"waiting for {len(todo)} cases that another process computes")
                calls = [(case, wait) for case in todo.values()]
                with closing(where.outcomes(partial(_settle, work), calls)) as outcomes:
                    for outcome in outcomes:
                        key, state = (
                            _record(store, outcome) if isinstance(outcome, Lost) else outcome
                        )
                        if state != "busy":
                            progress.settled(todo.pop(key), failed=state == "failed")
            store.clean()  # of workers that were killed and replaced
        except BaseException as error:
            with suppress(AdvlabError):
                store.clean(timeout=2.0)
            if isinstance(error, KeyboardInterrupt):
                done = progress.stored + sum(store.code(case) == work.code for case in missing)
                total = progress.stored + len(missing)
                progress.say(f"stopped: {done} of {total} cases are stored; run it again to go on")
            raise


@dataclass(frozen=True)
class _Work:
    """What all cases of a sweep have in common; sent to each worker once.

    `first` stands before what refers to the experiment's file, so it is unpickled before that.
    """

    first: "_Import"
    compute: Callable[[Any], pl.DataFrame | Computed]
    kinds: tuple[type[Case], ...]
    code: str
    store: Store
    reuse: bool

    def __reduce__(self):
        fields = (self.first, self.compute, self.kinds, self.code, self.store, self.reuse)
        return (_Work, fields)

    def accepts(self, run: Stored | None) -> TypeGuard[Stored]:
        """Is there a run that needs no computing: of this code and these data, or kept as asked?"""
        if run is None:
            return False
        return self.reuse or (run.code == self.code and not _data_changes(run).changed)

    def check(self) -> None:
        """A worker may have imported newer files than those that the sweep began with."""
        if self.first.source is None:  # then the function itself was sent, not its name
            return
        if _code_here(self.compute, self.kinds) != self.code:
            raise AdvlabError(
                f"the code of {self.first.source} as it was when the sweep began",
                "code that was changed meanwhile",
                "run it again; stored cases are kept",
            )


@cache
def _code_here(compute: Callable[..., Any], kinds: tuple[type[Case], ...]) -> str:
    return code_fingerprint(compute, *kinds)


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


def _record(store: Store, lost: Lost) -> tuple[str, State]:
    """Store why a worker could not say itself what became of its case."""
    case, _ = lost.call
    with store.lock(case.key(), 0.0) as mine:
        if not mine:
            return case.key(), "busy"
        store.write_failure(case, lost.error)
        return case.key(), "failed"


def _settle(
    work: _Work, case: Case, wait: bool, began: Callable[[], object] = bool
) -> tuple[str, State]:
    key, store = case.key(), work.store
    with store.lock(key, -1.0 if wait else 0.0) as mine:
        if not mine:
            return key, "busy"
        try:
            if work.accepts(store.read(case)):
                return key, "stored"
        except Corrupt:
            store.set_aside(case)
        work.check()
        began()
        start, cpu = time.perf_counter(), time.process_time()
        try:
            with one_thread(), sharing(store.root.parent, work.reuse), recording() as data:
                files = encode(work.compute(case))
        except Exception as error:
            store.write_failure(case, error)
            return key, "failed"
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        store.write(case, files, seconds, work.code, data, cpu=cpu, memory=_most_memory())
        return key, "computed"


def _most_memory() -> int:
    """The most bytes that this process has held at any time; 0 where the system does not say."""
    if resource is None:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def _collect(cases: Iterable[Case], work: _Work, runs: dict[str, Stored]) -> Swept:
    tables, failed = [], []
    found: dict[str, Stored] = {}
    for case in cases:
        run = runs.get(case.key())
        if run is None:
            run = work.store.read(case, arrays=False)
            if not work.accepts(run):
                what = "data files were" if run and run.code == work.code else "run was"
                reason = f"its {what} changed while the sweep went on"
                reason = work.store.failure(case) or reason
                failed.append(Failure(case=case.model_dump(mode="json"), reason=reason))
                continue
        found[case.key()] = run
        tables.append(with_settings(run.table, case.model_dump()))
    table = pl.concat(tables, how="diagonal_relaxed") if tables else pl.DataFrame()
    sums = {key: run.sha256 for key, run in found.items()}
    seconds = sum(run.seconds for run in found.values())
    cpu = sum(run.cpu for run in found.values())
    memory = max((run.memory for run in found.values()), default=0)
    return Swept(table, failed, seconds, cpu, memory, sums, _makers(found.values()))


def _makers(runs: Iterable[Stored]) -> list[Maker]:
    """Which code, versions and commits computed runs, each once."""
    makers: list[Maker] = []
    for run in runs:
        one = Maker(versions=run.versions, commit=run.commit, code=run.code, data=run.data, runs=1)
        same = [maker.model_copy(update={"runs": 1}) == one for maker in makers]
        if any(same):
            n = same.index(True)
            makers[n] = makers[n].model_copy(update={"runs": makers[n].runs + 1})
        else:
            makers.append(one)
    return makers


_TYPES = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String, type(None): pl.Null}


def with_settings(table: pl.DataFrame, case: Mapping[str, Any]) -> pl.DataFrame:
    """A case's scalar settings as columns before its rows; a row's own column goes first."""
    settings = [
        pl.lit(value, dtype=_TYPES[type(value)]).alias(name)
        for name, value in case.items()
        if type(value) in _TYPES and name not in table.columns
    ]
    return table.select(*settings, pl.all())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
