"""The cores of this machine: supervised workers, each with one case at a time.

A worker that dies is replaced, and only its own case is tried again; one that takes too long or too
much memory is killed. None of this can stop the other cases.
"""

import math
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import wait
from typing import Any

import joblib

from ..core.errors import AdvlabError
from ..core.forkserver import ForkServer, Worker, server
from ..core.progress import duration
from .threads import VARIABLES, in_worker

Call = tuple[Any, ...]
Outcomes = Generator[Any, None, None]

_MOST_JOBS = 64
_JOBS_PER_CORE = 8
_SECONDS_BETWEEN_LOOKS = 0.05
_SECONDS_TO_STOP = 5.0
_SECONDS_TO_SLEEP = 3600.0
_MOST_UNBORN = 3


class Killed(Exception):
    """The worker of a case died."""


@dataclass(frozen=True)
class Limits:
    """What a case may take, and how often it is tried.

    Args:
        timeout: seconds of computing; None is no limit.
        memory: bytes that its process holds in memory; None is no limit. On Linux only.
        retries: how often a case is tried again whose worker died, of something else than a limit.
    """

    timeout: float | None = None
    memory: int | None = None
    retries: int = 1

    def __post_init__(self):
        if self.timeout is not None and not self.timeout > 0:
            raise AdvlabError("a timeout above 0 seconds", self.timeout)
        if self.memory is not None and not self.memory > 0:
            raise AdvlabError("a limit of memory above 0 bytes", self.memory)
        if self.memory is not None and sys.platform != "linux":
            raise AdvlabError("Linux, for a limit of memory", sys.platform)
        if self.retries < 0:
            raise AdvlabError("retries of 0 or more", self.retries)

    @property
    def asked(self) -> bool:
        """Is there a limit that only a process of its own can be held to?"""
        return self.timeout is not None or self.memory is not None


@dataclass(frozen=True)
class Lost:
    """In place of an outcome: the call that gave none, and why."""

    call: Call
    error: Exception


@dataclass(frozen=True)
class Local:
    """Worker processes on as many cores as there are; this process for one job without limits."""

    jobs: int | None = None
    limits: Limits = Limits()

    def __post_init__(self):
        most = max(_MOST_JOBS, _JOBS_PER_CORE * joblib.cpu_count())
        if self.jobs is not None and not 1 <= self.jobs <= most:
            raise AdvlabError(
                f"between 1 and {most} jobs on this machine",
                self.jobs,
                "one per core is the default",
            )

    def outcomes(self, settle: Callable[..., Any], calls: Sequence[Call]) -> Outcomes:
        if self.jobs == 1 and not self.limits.asked:
            for call in calls:
                yield settle(*call)
            return
        jobs = min(self.jobs or joblib.cpu_count(), len(calls))
        yield from _Supervisor(jobs, self.limits, settle, calls).outcomes()


@dataclass
class _Task:
    call: Call
    deaths: int = 0


@dataclass
class _Slot:
    """A worker, and what it is computing since when."""

    worker: Worker
    task: _Task | None = None
    began: float | None = None


@dataclass
class _Supervisor:
    jobs: int
    limits: Limits
    settle: Callable[..., Any]
    calls: Sequence[Call]
    slots: list[_Slot] = field(default_factory=list)
    unborn: int = 0

    def outcomes(self) -> Outcomes:
        self.queue = deque(_Task(call) for call in self.calls)
        try:
            while self.queue or any(slot.task for slot in self.slots):
                self._hand_out()
                self._wait()
                for slot in list(self.slots):
                    yield from self._heard(slot)
                    yield from self._over(slot)
        finally:
            self._stop()

    def _hand_out(self) -> None:
        """Give each free worker a case; start one for each case that has none, up to `jobs`."""
        for slot in self.slots:
            if not slot.task and self.queue:
                self._give(slot)
        while self.queue and len(self.slots) < self.jobs:
            self.slots.append(_Slot(Worker(_server(), _sendable(partial(in_worker, self.settle)))))
            self._give(self.slots[-1])

    def _give(self, slot: _Slot) -> None:
        slot.task, slot.began = self.queue.popleft(), None
        slot.worker.send(_sendable(slot.task.call))

    def _wait(self) -> None:
        """Until a worker says something, dies, or may be over a limit."""
        seconds = None
        if self.limits.memory is not None:
            seconds = _SECONDS_BETWEEN_LOOKS
        elif self.limits.timeout is not None:
            began = [slot.began for slot in self.slots if slot.task and slot.began is not None]
            left = min(began, default=math.inf) + self.limits.timeout - time.monotonic()
            seconds = min(max(left, 0.0), _SECONDS_TO_SLEEP)
        workers = [slot.worker for slot in self.slots]
        wait([pipe for one in workers for pipe in (one.answers, one.status)], seconds)

    def _heard(self, slot: _Slot) -> Iterator[Any]:
        worker = slot.worker
        worker.look()  # before its answers: those that it sent before its end are then all there
        for kind, what in _answers(worker):
            if kind == "raised":
                raise what
            if kind == "began":
                slot.began = time.monotonic()
            else:
                slot.task = slot.began = None
                yield what
        if worker.ended:
            self._drop(slot)
            yield from self._died(slot)
        elif not slot.task and self._bloated(worker):
            self._drop(slot)

    def _died(self, slot: _Slot) -> Iterator[Lost]:
        if (task := slot.task) is None:
            return
        if slot.worker.pid is None:  # it never lived
            self.unborn += 1
            if self.unborn > _MOST_UNBORN:
                raise AdvlabError("a process that starts workers", "one that ended before it did")
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            self.queue.appendleft(task)
            return
        task.deaths += 1
        if task.deaths <= self.limits.retries:
            self.queue.append(task)
        else:
            yield Lost(task.call, Killed(_how(slot.worker.code, task.deaths)))

    def _over(self, slot: _Slot) -> Iterator[Lost]:
        """Kill a worker that is over a limit."""
        if slot not in self.slots or not slot.task or slot.began is None:
            return
        error, limits = None, self.limits
        if limits.timeout is not None and time.monotonic() - slot.began > limits.timeout:
            error = TimeoutError(f"took longer than {duration(limits.timeout)}")
        elif limits.memory is not None and _resident(slot.worker) > limits.memory:
            error = MemoryError(f"used more than {_size(limits.memory)}")
        if error is None or slot.worker.answers.poll():
            return
        slot.worker.kill()
        slot.worker.wait(_SECONDS_TO_STOP)
        self._drop(slot)
        yield Lost(slot.task.call, error)

    def _bloated(self, worker: Worker) -> bool:
        """Does it hold so much of earlier cases that the next one could be blamed for it?"""
        return self.limits.memory is not None and _resident(worker) > self.limits.memory / 2

    def _drop(self, slot: _Slot) -> None:
        self.slots.remove(slot)
        slot.worker.close()

    def _stop(self) -> None:
        busy = [slot.worker for slot in self.slots if slot.task]
        for worker in busy:
            worker.kill()
        deadline = time.monotonic() + _SECONDS_TO_STOP
        for worker in busy:
            worker.wait(max(deadline - time.monotonic(), 0.0))
        for slot in list(self.slots):
            self._drop(slot)


def _answers(worker: Worker) -> list[tuple[str, Any]]:
    """What a worker has said by now; where its pipe is closed, its end is waited for."""
    found = []
    try:
        while worker.answers.poll():
            found.append(worker.answers.recv())
    except (EOFError, OSError):
        worker.look(_SECONDS_TO_STOP)
        worker.ended = True
    return found


def _server() -> ForkServer:
    return server(dict.fromkeys(VARIABLES, "1"))


def _sendable(what: Any) -> Any:
    """Functions and classes of notebooks and scripts too, which workers cannot import."""
    return joblib.wrap_non_picklable_objects(what, keep_wrapper=False)


def _how(code: int | None, times: int) -> str:
    """How a worker died, in words."""
    again = "" if times == 1 else f", {times} times"
    if code is None:
        return f"its worker was lost{again}"
    if code >= 0:
        return f"its worker ended with exit code {code}{again}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; memory may be short: try fewer --jobs" if -code == signal.SIGKILL else ""
    return f"its worker was ended by {name}{again}{hint}"


def _resident(worker: Worker) -> int:
    """The bytes of a worker that are in memory; 0 for one that is not there."""
    with suppress(OSError), open(f"/proc/{worker.pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _size(bytes: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if bytes >= size:
            return f"{bytes / size:.3g} {unit}"
    return f"{bytes} bytes"
