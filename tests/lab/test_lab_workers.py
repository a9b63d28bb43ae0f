"""Workers are supervised: one that dies or takes too much costs its own case alone."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import toy_experiment as toy
import toy_numpy

from advlab import lab
from advlab.cli import main
from advlab.cli.run import _BYTES, _SECONDS, _amount
from advlab.core.errors import AdvlabError
from advlab.lab.local import Killed, Limits, _how, _size

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Point(lab.Case):
    x: float


def square(case: Point) -> pl.DataFrame:
    return pl.DataFrame({"y": [case.x**2]})


POINTS = [Point(x=float(x)) for x in range(6)]
BAD = POINTS[3]


def logged(log: Path) -> int:
    """Note one more try of a case; the number of tries so far."""
    with log.open("a") as file:
        file.write("tried\n")
    return len(log.read_text().split())


def only_bad(swept: lab.Swept, reason: str) -> None:
    assert swept.table["x"].to_list() == [0.0, 1.0, 2.0, 4.0, 5.0]
    ((case, why),) = [(failure.case["x"], failure.reason) for failure in swept.failed]
    assert case == BAD.x
    assert reason in why


ENDS = {
    "SIGKILL, 2 times; memory may be short": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGABRT, 2 times": os.abort,
    "exit code 7, 2 times": lambda: os._exit(7),
    "exit code 3, 2 times": lambda: sys.exit(3),
}


@pytest.mark.parametrize("reason", ENDS)
def test_a_case_that_kills_its_worker_is_tried_twice_and_costs_no_other(tmp_path, reason):
    log, end = tmp_path / "log", ENDS[reason]

    def compute(case: Point) -> pl.DataFrame:
        if case.x == BAD.x:
            logged(log)
            end()
        return square(case)

    only_bad(lab.sweep(POINTS, compute, tmp_path / "runs", jobs=2), reason)
    assert len(log.read_text().split()) == 2
    again = lab.sweep(POINTS, square, tmp_path / "runs", jobs=2)
    assert again.table["y"].to_list() == [case.x**2 for case in POINTS]
    assert again.failed == []


def test_the_last_case_may_kill_its_worker_too(tmp_path):
    lab.sweep(POINTS[:3], square, tmp_path, jobs=1)

    def compute(case: Point) -> pl.DataFrame:
        os.kill(os.getpid(), signal.SIGKILL)
        return square(case)

    swept = lab.sweep([*POINTS[:3], BAD], compute, tmp_path, jobs=2, reuse=True)
    assert len(swept.table) == 3
    assert "SIGKILL" in swept.failed[0].reason


@pytest.mark.parametrize(("retries", "failed"), [(0, 1), (1, 0)])
def test_a_worker_that_dies_once(tmp_path, retries, failed):
    log = tmp_path / "log"

    def compute(case: Point) -> pl.DataFrame:
        if case.x == BAD.x and logged(log) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return square(case)

    swept = lab.sweep(POINTS, compute, tmp_path / "runs", jobs=2, retries=retries)
    assert len(swept.failed) == failed
    assert len(log.read_text().split()) == retries + 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_case_that_takes_too_long_is_killed_with_what_it_started(tmp_path, jobs):
    log = tmp_path / "log"

    def compute(case: Point) -> pl.DataFrame:
        if case.x == BAD.x:
            log.write_text(str(subprocess.Popen(["sleep", "600"]).pid))
            time.sleep(600)
        return square(case)

    swept = lab.sweep(POINTS, compute, tmp_path / "runs", jobs=jobs, timeout=1.5)
    only_bad(swept, "took longer than 2 s")
    assert not alive(int(log.read_text()))
    assert lab.sweep(POINTS, square, tmp_path / "runs", jobs=1).failed == []


def alive(pid: int) -> bool:
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return done.stdout.strip()[:1] not in ("", "Z")


@linux
def test_a_case_that_takes_too_much_memory_is_killed(tmp_path):
    def compute(case: Point) -> pl.DataFrame:
        blocks = []
        while case.x == BAD.x and len(blocks) < 60:
            blocks.append(np.ones(2**22))  # 32 MiB
            time.sleep(0.02)
        return square(case)

    swept = lab.sweep(POINTS, compute, tmp_path, jobs=2, memory=2**30)
    only_bad(swept, "MemoryError: used more than 1 GiB")


@linux
def test_memory_that_an_earlier_case_left_is_not_held_against_the_next(tmp_path):
    def compute(case: Point) -> pl.DataFrame:
        import builtins

        left = builtins.__dict__.setdefault("left", [])
        left.append(np.ones(2**26))  # 512 MiB
        time.sleep(0.1)
        return square(case)

    assert lab.sweep(POINTS[:4], compute, tmp_path, jobs=1, memory=2**30 * 5 // 4).failed == []


def test_time_that_a_case_waits_for_another_process_does_not_count(tmp_path):
    store = lab.Store(tmp_path)
    store.open()
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with store.lock(BAD.key(), 0.0):
            held.set()
            free.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    threading.Timer(4.0, free.set).start()
    start = time.monotonic()
    swept = lab.sweep(POINTS, square, tmp_path, jobs=2, timeout=1.0)
    thread.join()
    assert time.monotonic() - start > 2.0
    assert swept.failed == []


def test_limits_and_workers_change_no_bits(tmp_path):
    cases = toy.recipe("smoke")
    ways = {"here": {"jobs": 1}, "one": {"jobs": 1, "timeout": 60}, "two": {"jobs": 2}}
    for name, how in ways.items():
        lab.sweep(cases, toy.compute, tmp_path / name, **how)
    for case in cases:
        runs = [lab.Store(tmp_path / name).read(case) for name in ways]
        assert all(run.table.equals(runs[0].table) for run in runs)
        bits = [{k: v.tobytes() for k, v in run.arrays.items()} for run in runs]
        assert bits[0] == bits[1] == bits[2]


def test_workers_see_the_folder_and_the_variables_of_now(tmp_path, monkeypatch):
    def compute(case: Point) -> pl.DataFrame:
        return pl.DataFrame({"seen": [f"{os.environ.get('SEEN')} {os.getcwd()}"]})

    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        monkeypatch.setenv("SEEN", place)
        monkeypatch.chdir(tmp_path / place)
        (seen,) = set(lab.sweep(POINTS[:2], compute, "runs", jobs=2).table["seen"])
        assert seen == f"{place} {tmp_path / place}"


@pytest.mark.parametrize("error", [OSError("no"), AdvlabError("yes", "no")])
def test_an_error_of_the_store_ends_the_sweep(tmp_path, monkeypatch, error):
    class Broken(lab.Store):
        def write(self, *_, **__):
            raise error

    monkeypatch.setattr(sys.modules["advlab.lab.sweep"], "Store", Broken)
    with pytest.raises(type(error), match="no"):
        lab.sweep(POINTS, square, tmp_path, jobs=2)


SCRIPT = """
import sys
import polars as pl
from advlab import lab

class Point(lab.Case):
    x: float

def square(case):
    print("computing", case.x)
    return pl.DataFrame({"y": [case.x**2]})

cases = [Point(x=float(x)) for x in range(4)]
print(lab.sweep(cases, square, sys.argv[1], jobs=2).table["y"].to_list())
"""


def test_a_script_needs_no_guard(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "error", "script.py", "runs"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[0.0, 1.0, 4.0, 9.0]"
    assert done.stdout.count("computing") == 4  # what workers print is seen


def members(session: int) -> dict[int, str]:
    """The processes of a session that have not ended, and their commands."""
    columns = ["ps", "-eo", "sess=,pid=,stat=,args="]
    lines = subprocess.run(columns, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split(maxsplit=3) for line in lines]
    return {
        int(pid): args
        for sess, pid, stat, args in found
        if sess == str(session) and not stat.startswith("Z")
    }


@pytest.fixture
def process(tmp_path):
    command = [sys.executable, "-m", "advlab", "run", toy_numpy.__file__, "--jobs", "2"]
    started = subprocess.Popen(
        [*command, "--seeds", "100", "--out", str(tmp_path / "runs")],
        start_new_session=True,
        cwd=Path(toy_numpy.__file__).parent,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield started
    started.kill()
    started.communicate()


def wait_until(true, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(found)


@pytest.mark.parametrize("count", [2, 4], ids=["server starts", "workers compute"])
def test_workers_die_with_their_parent(tmp_path, process, count):
    """Two processes: the parent and the server, which still imports; four: with two workers."""
    assert wait_until(lambda: len(members(process.pid)) >= count)
    if count == 4:
        assert wait_until(lambda: list(tmp_path.rglob("run.json")))
    os.kill(process.pid, signal.SIGKILL)
    assert wait_until(lambda: not members(process.pid), 5.0), members(process.pid)


def test_a_server_that_is_killed_is_replaced(tmp_path, process):
    assert wait_until(lambda: list(tmp_path.rglob("run.json")))
    (server,) = [pid for pid in children(process.pid) if children(pid)]
    os.kill(server, signal.SIGKILL)
    before = len(list(tmp_path.rglob("run.json")))
    assert wait_until(lambda: len(list(tmp_path.rglob("run.json"))) > before + 2)


def children(pid: int) -> list[int]:
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(child) for child in done.stdout.split()]


def test_elsewhere_than_on_linux_a_pipe_tells_that_the_server_is_gone():
    code = (
        "import os, threading, time; from advlab.core.forkserver import end_with\n"
        "here, there = os.pipe()\n"
        "threading.Thread(target=end_with, args=[here], daemon=True).start()\n"
        "time.sleep(0.2); print('alive', flush=True); os.close(there); time.sleep(60)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (1, "alive\n")


def test_how_a_worker_died():
    assert _how(-11, 1) == "its worker was ended by SIGSEGV"
    assert _how(0, 1) == "its worker ended with exit code 0"
    assert _how(None, 2) == "its worker was lost, 2 times"
    assert issubclass(Killed, Exception)


def test_amounts():
    assert [_amount(text, _SECONDS, "") for text in ("90", "1.5m", "2 h", "10min", None)] == [
        90,
        90,
        7200,
        600,
        None,
    ]
    assert [_amount(text, _BYTES, "") for text in ("4G", "500M", "1.5GiB", "2kb", "7")] == [
        2**32,
        500 * 2**20,
        1.5 * 2**30,
        2048,
        7,
    ]
    for text in ("", "0", "-3", "4X", "ten", "1e3", "4 G G", "inf", "nan"):
        with pytest.raises(AdvlabError, match="a size"):
            _amount(text, _BYTES, "a size")
    assert [_size(size) for size in (2**32, 3 * 2**19, 5)] == ["4 GiB", "1.5 MiB", "5 bytes"]


@pytest.mark.parametrize(
    "limits", [{"timeout": 0.0}, {"timeout": float("nan")}, {"memory": 0}, {"retries": -1}]
)
def test_absurd_limits(limits):
    with pytest.raises(AdvlabError):
        Limits(**limits)


def test_limits_are_only_for_local(tmp_path):
    with pytest.raises(AdvlabError, match="only with the engine local"):
        lab.sweep(POINTS, square, tmp_path, backend="ray", timeout=1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seeds", "999999999999"], "at most 1,000,000; got 999999999999"),
        (["--seeds", "900000"], "200,000 cases; got 900,000, for about 1,350,000 cases"),
        (["--jobs", "100000"], "jobs on this machine; got 100000"),
        (["--timeout", "soon"], "10m or 2h; got 'soon'"),
        (["--memory", "4 loaves"], "500M or 4G; got '4 loaves'"),
    ],
)
def test_absurd_sizes_are_refused_in_one_line(tmp_path, capsys, options, words):
    with pytest.raises(SystemExit) as stop:
        main(["run", toy_numpy.__file__, "--out", str(tmp_path / "runs"), *options])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert not (tmp_path / "runs").exists()


def test_absurd_seeds_and_jobs_are_refused_by_the_library(tmp_path):
    with pytest.raises(AdvlabError, match="at most 1,000,000"):
        lab.run(toy_numpy.__file__, seeds=10**12, out=tmp_path)
    for jobs in (0, -1, 10**6):
        with pytest.raises(AdvlabError, match="one per core is the default"):
            lab.sweep(POINTS, square, tmp_path, jobs=jobs)


FATAL = """
import os, signal, toy_numpy
from toy_numpy import ABOUT, Case, figure, recipe, verdicts

def compute(case):
    if case.size == 250:
        os.kill(os.getpid(), signal.SIGKILL)
    return toy_numpy.compute(case)
"""


def test_the_command_survives_a_fatal_case_with_one_job(tmp_path, capsys, monkeypatch):
    (tmp_path / "fatal.py").write_text(FATAL)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["run", "fatal.py", "--seeds", "2", "--jobs", "1"])
    assert stop.value.code == 3
    errors = capsys.readouterr().err
    assert "SIGKILL, 2 times" in errors
    assert "1 cases failed" in errors
