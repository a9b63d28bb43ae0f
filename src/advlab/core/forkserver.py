"""Worker processes that are forked from a small server, and end when their parent does.

The server is a fresh interpreter with one thread. It imports the heavy libraries once, so a worker
is there in a few milliseconds and one that was killed is replaced at once. It never imports polars,
which starts threads when it is imported: a fork would lose them.

A worker is the leader of a process group: what it started itself ends with it. The server ends when
its socket closes, that is, when its parent ends, however that ends; a worker ends with the server.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import ForkingPickler
from typing import Any

_PR_SET_PDEATHSIG = 1
_REQUEST = struct.Struct("=ci")
_FORK, _KILL = b"F", b"K"
_SECONDS_TO_END = 0.5
_HEAVY = (
    "numpy",
    "torch",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.stats",
    "altair",
    "joblib",
    "pydantic",
    "rich.progress",
    "filelock",
    "safetensors.numpy",
    "jaxtyping",
    "clarabel",
)
_load: Callable[[bytes], Any] = ForkingPickler.loads  # pyright: ignore[reportAttributeAccessIssue]
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    "from advlab.core.forkserver import serve; serve(int(sys.argv[2]), sys.argv[3:])"
)


class ForkServer:
    """The process that forks workers; the one that `server` gives is kept for later.

    Args:
        variables: environment variables of the server and its workers, besides their parent's.
        modules: what it imports before it forks; where one cannot be imported, workers try.
    """

    def __init__(self, variables: Mapping[str, str], modules: Iterable[str]):
        self._requests, theirs = socket.socketpair()
        self._lock = threading.Lock()
        self.variables = dict(variables)
        handle, path = str(theirs.fileno()), json.dumps(list(map(str, sys.path)))
        with theirs, _no_ctrl_c():
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, path, handle, *modules],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **variables},
            )

    def fork(self, *handles: int) -> None:
        """A new worker, with the two ends of pipes that it gets."""
        with self._lock, suppress(BrokenPipeError):  # the worker's pipes then say that it is gone
            socket.send_fds(self._requests, [_REQUEST.pack(_FORK, 0)], handles)

    def kill(self, worker: int) -> None:
        """Kill a worker and what it started; one that has ended already is left alone."""
        with self._lock, suppress(BrokenPipeError):
            self._requests.sendall(_REQUEST.pack(_KILL, worker))

    def alive(self) -> bool:
        """Has it not ended?"""
        return self._process.poll() is None

    def close(self) -> None:
        """End the server and all its workers."""
        self._requests.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:  # it is still importing
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Let go of a server that belongs to the process that this one was forked from."""
        self._requests.close()
        self._process.returncode = 0


_servers: dict[bool, ForkServer] = {}
"""By whether they have torch, which is what takes long to import."""
_starting = threading.Lock()


def server(variables: Mapping[str, str]) -> ForkServer:
    """This process's server, with the libraries that this process had imported when it started.

    Args:
        variables: environment variables of the server and its workers, besides their parent's.
    """
    # Elsewhere than on Linux, libraries may not survive a fork; there workers import them.
    loaded = [name for name in _HEAVY if name in sys.modules and sys.platform == "linux"]
    with _starting:
        torch = "torch" in loaded or True in _servers
        if torch in _servers and not _servers[torch].alive():
            _servers.pop(torch).close()
        if torch not in _servers:
            _servers[torch] = ForkServer(variables, loaded)
        return _servers[torch]


def _close() -> None:
    for one in _servers.values():
        one.close()
    _servers.clear()


def _forget() -> None:
    for one in _servers.values():
        one.forget()
    _servers.clear()


atexit.register(_close)
os.register_at_fork(after_in_child=_forget)


@contextmanager
def _no_ctrl_c() -> Iterator[None]:
    """Processes started in here never hear Ctrl-C, which a terminal sends to all: we end them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Worker:
    """A process that waits for calls; see `_answer` for what it says.

    Args:
        server: what forks it.
        function: what it calls; see `_answer`.
    """

    def __init__(self, server: ForkServer, function: Any):
        self._server = server
        self.pid: int | None = None
        self.ended, self.code = False, None
        self.answers, theirs = Pipe()
        self.status, written = Pipe(duplex=False)
        with theirs, written:
            server.fork(theirs.fileno(), written.fileno())
        self.send((os.getcwd(), list(sys.path), {**os.environ, **server.variables}))
        self.send(function)

    def send(self, message: Any) -> None:
        """Send it a call; one that has ended does not hear it, which its status tells."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.answers.send(message)

    def look(self, timeout: float = 0.0) -> None:
        """Read what its server says of it: its number, and how it ended."""
        while not self.ended and self.status.poll(timeout):
            try:
                said = self.status.recv()
            except EOFError:  # the server was killed, and it died with the server
                self.ended = True
                return
            if self.pid is None:
                self.pid = said
            else:
                self.ended, self.code = True, said

    def kill(self) -> None:
        """Kill it and what it started. One that is not there yet will find that it is unheard."""
        self.look()
        if self.pid is not None and not self.ended:
            self._server.kill(self.pid)

    def wait(self, seconds: float) -> None:
        """Wait for the end of one that was killed, though not for ever."""
        if self.pid is not None:
            self.look(seconds)

    def close(self) -> None:
        """One that is idle ends by this."""
        self.answers.close()
        self.status.close()


# The server's side.


def serve(handle: int, modules: Iterable[str]) -> None:
    """Fork workers as asked, and tell how they ended, until the other side is closed.

    Args:
        handle: the socket that requests come from.
        modules: what to import first.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # so that a worker's collections do not copy what it shares with the others
    requests = socket.socket(fileno=handle)
    heard, rung = os.pipe()
    os.set_blocking(rung, False)
    signal.set_wakeup_fd(rung)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    lifeline = os.pipe()
    workers: dict[int, Connection] = {}
    server = os.getpid()
    while True:
        ready, _, _ = select.select([requests, heard], [], [])
        if heard in ready:
            os.read(heard, 4096)
            _bury(workers)
        if requests in ready:
            request, handles, _, _ = socket.recv_fds(requests, _REQUEST.size, 2)
            if not request:
                break
            kind, pid = _REQUEST.unpack(request)
            if kind == _KILL and pid in workers:
                _kill(pid)
            elif kind == _FORK:
                theirs, status = Connection(handles[0]), Connection(handles[1])
                pid = os.fork()
                if pid == 0:
                    for unused in (requests, status, *workers.values()):
                        unused.close()
                    for pipe in (heard, rung, lifeline[1]):
                        os.close(pipe)
                    _live(theirs, lifeline[0], server)
                with suppress(OSError):
                    os.setpgid(pid, pid)
                workers[pid] = status
                theirs.close()
                with suppress(OSError):
                    status.send(pid)
    for pid in workers:
        _kill(pid)
    os._exit(0)


def _bury(workers: dict[int, Connection]) -> None:
    for pid in list(workers):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _kill(pid)  # what it started and left
            with workers.pop(pid) as told, suppress(OSError):
                told.send(os.waitstatus_to_exitcode(status))


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


# The worker's side.


def _live(calls: Connection, lifeline: int, server: int) -> None:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with suppress(OSError):
            os.setpgid(0, 0)
        _die_with(server, lifeline)
        _answer(calls)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _die_with(server: int, lifeline: int) -> None:
    """By the kernel on Linux; elsewhere by a thread that sees the other end of a pipe close."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != server:  # it died before that call
            os._exit(1)
    else:
        threading.Thread(target=end_with, args=[lifeline], daemon=True).start()


def end_with(lifeline: int) -> None:
    """Wait until the other end of a pipe is closed, then end this process."""
    os.read(lifeline, 1)
    os._exit(1)


def _answer(calls: Connection) -> None:
    """Make calls as they come, until no more can come.

    The function comes first; it gets each call's arguments, and `began` to say that it waits for
    nothing more. The answers: ("began", None), then ("gave", value) or ("raised", error).
    """
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        folder, sys.path[:], variables = calls.recv()
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        function: Callable[..., Any] | None = None
        while True:
            message = calls.recv_bytes()
            if _unheard(calls):
                return
            try:
                if function is None:
                    function = _load(message)
                    continue
                call = _load(message)
                value = function(*call, began=lambda: calls.send(("began", None)))
            except Exception as error:
                _flush()
                error.add_note(traceback.format_exc())
                _send_error(calls, error)
                return
            _flush()
            calls.send(("gave", value))


def _unheard(calls: Connection) -> bool:
    """Has the other side gone, with calls still in the pipe?"""
    poll = select.poll()
    poll.register(calls.fileno(), 0)
    return bool(poll.poll(0))


def _send_error(calls: Connection, error: Exception) -> None:
    try:
        calls.send(("raised", error))
    except OSError:
        raise
    except Exception:  # it holds something that cannot be sent
        calls.send(("raised", RuntimeError(f"{type(error).__name__}: {error}")))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
