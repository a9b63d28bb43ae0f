"""Runs that several experiments read: computed once, stored beside the experiments' own.

    def compute(case):
        trained = lab.shared(Training(seed=case.seed), train, "trainings")
        return measured(trained.arrays)

Inside a sweep whose experiment is `<out>/<paper>/<item>` the shared runs are in `<out>/<paper>/`
under their own name. They are cases like all others: keyed by their settings, locked while they are
computed, and computed again when their code or their data changed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import polars as pl

from ..core.datafiles import record, recording
from ..core.errors import AdvlabError
from .case import Case, Computed
from .store import Store, Stored

_place: ContextVar[tuple[Path, bool] | None] = ContextVar("folder of shared runs", default=None)
_memory: ContextVar[dict[str, Stored] | None] = ContextVar("shared runs in memory", default=None)


@contextmanager
def sharing(folder: Path, reuse: bool = False) -> Iterator[None]:
    """Keep shared runs below a folder inside the block.

    Args:
        folder: where each kind of shared run has its own folder.
        reuse: whether runs of other code or other data are kept.
    """
    token = _place.set((folder, reuse))
    try:
        yield
    finally:
        _place.reset(token)


@contextmanager
def remembering(memory: dict[str, Stored]) -> Iterator[None]:
    """Outside of a sweep, keep shared runs in memory; inside of it they are stored anyway.

    Args:
        memory: where they are kept, unless a block around this one has a memory already.
    """
    token = _memory.set(memory if _memory.get() is None else _memory.get())
    try:
        yield
    finally:
        _memory.reset(token)


def shared(case: Case, compute: Callable[[Any], pl.DataFrame | Computed], name: str) -> Stored:
    """The run of a case that several experiments read; computed here if nobody has yet.

    Whoever else needs it meanwhile waits. The data files that it was made from count as read by the
    caller, whose own code reaches `compute`: so a run of the caller is as stale as this one.

    Args:
        case: the settings of the shared run.
        compute: gives its rows and arrays, as an experiment's `compute`; a function of a module. It
            may itself ask for shared runs.
        name: the folder of such runs.

    Returns:
        Rows and arrays. Outside of a sweep nothing is stored: they are computed every time, but
        for those that `remembering` kept.

    Example:
        from advlab import lab
        lab.shared(Training(seed=0), train, "trainings").arrays["weights"]
    """
    place = _place.get()
    if place is None:
        memory, key = _memory.get(), f"{name}/{case.key()}"
        run = memory.get(key) if memory else None
        if run is None:
            with recording() as data:
                made = compute(case)
            made = made if isinstance(made, Computed) else Computed(made)
            run = Stored(made.table, dict(made.arrays), seconds=0.0, data=data)
            if memory is not None:
                memory[key] = run
        record(run.data)
        return run
    from .sweep import sweep  # a sweep calls compute, which calls this

    folder, reuse = place
    swept = sweep([case], compute, folder / name, jobs=1, reuse=reuse)
    if swept.failed:
        raise AdvlabError(f"a whole run of {name}", swept.failed[0].reason)
    run = Store(folder / name).read(case)
    if run is None:
        raise AdvlabError(f"a whole run of {name}", "one that is gone", "run it again")
    record(run.data)
    return run
