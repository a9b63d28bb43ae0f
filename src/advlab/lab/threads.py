"""One thread per case: sums have one order, so the bits do not depend on the number of jobs."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from threadpoolctl import threadpool_limits

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@contextmanager
def one_thread() -> Iterator[None]:
    """Loaded libraries compute on one thread, and so do those that are loaded meanwhile."""
    torch = sys.modules.get("torch")
    before = {name: os.environ.get(name) for name in VARIABLES}
    threads = torch.get_num_threads() if torch else None
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
    if torch:
        torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if torch:
            torch.set_num_threads(threads)


def in_worker(settle: Callable[..., Any], *call: Any, **more: Any) -> Any:
    """What a call gives in a process that does nothing else, where torch needs no second thread."""
    if torch := sys.modules.get("torch"):
        with suppress(RuntimeError):  # it can be set only once per process
            torch.set_num_interop_threads(1)
    return settle(*call, **more)
