"""Where the cases of a sweep are computed: on the cores of this machine, or on a Ray cluster.

A backend has `outcomes(settle, calls)`: what `settle(*call)` gives for each call, in any order, as
soon as it is there; `Lost` for a call whose worker died or was over a limit. Closing that generator
ends the workers. Workers on this machine call `settle(*call, began=say)`, and a limit of time is
counted from when `settle` says so.
"""

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from ..core.errors import AdvlabError
from .local import Call, Limits, Local, Outcomes
from .threads import in_worker

BackendName = Literal["local", "ray"]

_RETRIES = 3
_SECONDS_TO_ANSWER = 10.0
_SECONDS_TO_STOP = 5.0


@dataclass(frozen=True)
class Ray:
    """A Ray cluster: the one at `address`, else the one that this process has joined, else
    `$RAY_ADDRESS`, else a new one on this machine. Its workers see this machine's file system.

    Plain tasks, not joblib's Ray backend: that one gives no result before the last, lets Ray put
    all workers on one node (they claim no core), and a killed worker loses the whole call. A task
    is started again elsewhere when its worker or node dies.
    """

    jobs: int | None = None
    address: str | None = None

    def outcomes(self, settle: Callable[..., Any], calls: Sequence[Call]) -> Outcomes:
        if not calls:
            return
        # Ray prints what befalls its workers on stdout, where our results go.
        with redirect_stdout(sys.stderr), _joined(self.address, self.jobs) as ray:
            yield from self._outcomes(ray, settle, calls)

    def _outcomes(self, ray: Any, settle: Callable[..., Any], calls: Sequence[Call]) -> Outcomes:
        task = ray.remote(_from_afar).options(
            num_cpus=1, max_retries=_RETRIES, runtime_env={"env_vars": _variables()}
        )
        there, rest = _Surroundings(os.getcwd(), list(sys.path)), iter(calls)
        limit = self.jobs or len(calls)
        pending, lost = [], 0
        try:
            while True:
                more = islice(rest, limit - len(pending))
                pending += [task.remote((there, settle, *call)) for call in more]
                if not pending:
                    break
                (done,), pending = ray.wait(pending)
                try:
                    outcome = ray.get(done)
                except ray.exceptions.RayTaskError as error:
                    raise _cause(ray, error) from None
                except ray.exceptions.RayError:
                    lost += 1
                else:
                    yield outcome
        finally:
            _cancel(ray, pending)
        if lost:
            raise AdvlabError(
                "workers that live until their cases are done",
                f"{lost} cases whose workers were killed {_RETRIES + 1} times each",
                "memory may be short on the nodes; stored cases are kept",
            )


Backend = Local | Ray


def backend(
    name: BackendName,
    jobs: int | None = None,
    address: str | None = None,
    limits: Limits = Limits(),  # noqa: B008 - it is frozen
) -> Backend:
    """The backend of a name.

    Args:
        name: "local" or "ray".
        jobs: how many cases are computed at once; as many as there are cores if left out.
        address: the Ray cluster to join; with "ray" only.
        limits: what a case may take; with "local" only.
    """
    if name == "ray":
        if limits.asked:
            raise AdvlabError(
                "limits of time and memory only with the engine local", "limits with ray"
            )
        return Ray(jobs, address)
    if address is not None:
        raise AdvlabError(
            "an address only with the engine ray", f"{address!r} with {name}", "add --engine ray"
        )
    return Local(jobs, limits)


def _from_afar(sent: tuple[Any, ...]) -> Any:
    _, settle, *call = sent
    return in_worker(settle, *call)


@dataclass(frozen=True)
class _Surroundings:
    """The folder and import path of this process; a worker is put there before it loads a call."""

    folder: str
    path: list[str]

    def __reduce__(self):
        return (_enter, (self.folder, self.path))


def _enter(folder: str, path: list[str]) -> _Surroundings:
    try:
        os.chdir(folder)
    except OSError as error:
        raise AdvlabError(
            f"a file system that all nodes share, with {folder}",
            f"{socket.gethostname()}: {error.strerror}",
        ) from None
    sys.path += [place for place in path if place not in sys.path]
    return _Surroundings(folder, path)


def _variables() -> dict[str, str]:
    """The environment of a worker: one thread from its start, and this process's own settings."""
    own = {name: value for name, value in os.environ.items() if name.startswith("ADVLAB_")}
    return own | {"OMP_NUM_THREADS": "1"}


def _cause(ray: Any, error: Any) -> Exception:
    """What was raised in a worker; a call that could not even be loaded there comes from Ray."""
    cause = error.cause
    if isinstance(cause, Exception) and not isinstance(cause, ray.exceptions.RayError):
        return cause
    reason = str(cause).partition("\n")[0]
    return AdvlabError("nodes with the packages and the files of this machine", reason)


def _cancel(ray: Any, pending: list[Any]) -> None:
    for task in pending:
        ray.cancel(task, force=True)
    if pending:
        ray.wait(pending, num_returns=len(pending), timeout=_SECONDS_TO_STOP)


@contextmanager
def _joined(address: str | None, jobs: int | None) -> Iterator[Any]:
    """Ray while this process belongs to a cluster; one that the caller has joined is kept."""
    place = address or os.environ.get("RAY_ADDRESS") or "local"
    if place == "local":
        # Read when Ray is first imported: a cluster of one machine then listens to no other.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = _imported()
    if address is None and ray.is_initialized():
        yield ray
        return
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    size = {"num_cpus": jobs, "include_dashboard": False} if place == "local" else {}
    _answers(place)
    try:
        ray.init(place, **quiet, **size)
    except (ConnectionError, RuntimeError, ray.exceptions.RayError) as error:
        raise _unreachable(place, error) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _imported() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody else need know of a sweep
    try:
        import ray
    except ImportError as error:
        raise AdvlabError(
            "Ray, for the engine ray", error, 'pip install "advlab[cluster]"'
        ) from None
    return ray


def _answers(place: str) -> None:
    """Refuse a host and port that nobody listens at, where Ray would try for minutes."""
    host, colon, port = place.removeprefix("ray://").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_ANSWER).close()
    except (OSError, ValueError) as error:
        raise _unreachable(place, error) from None


def _unreachable(place: str, error: Exception) -> AdvlabError:
    words = " ".join(str(error).split())
    return AdvlabError(
        f"a Ray cluster that can be joined at {place}",
        words,
        "`ray start --head` makes one and says its address",
    )
