"""Whatever stops a sweep, the next one goes on from whole runs to the same table, bit for bit."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import toy_numpy as toy

from advlab import lab

TOY = Path(toy.__file__)
CASES = toy.recipe("laptop")


def start(out: Path, *options: str, **settings) -> subprocess.Popen:
    command = [sys.executable, "-m", "advlab", "run", str(TOY), "--out", str(out), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Its own group, as a terminal gives it; run from there, the toy's name is just "toy_numpy".
    return subprocess.Popen(command, start_new_session=True, cwd=TOY.parent, **pipes, **settings)


def finish(process: subprocess.Popen) -> tuple[int, str]:
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def runs(out: Path) -> list[Path]:
    return [path for case in CASES if (path := out / "toy_numpy" / case.key()).exists()]


def wait_for(out: Path, count: int, process: subprocess.Popen) -> None:
    while len(runs(out)) < count and process.poll() is None:
        time.sleep(0.002)


def living(group: int) -> list[str]:
    """The processes of a group that have not ended; ended ones may wait for init to notice."""
    columns = ["ps", "-eo", "pgid=,stat=,args="]
    lines = subprocess.run(columns, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split(maxsplit=2) for line in lines]
    return [line[-1] for line in found if line[0] == str(group) and not line[1].startswith("Z")]


def never(case):
    raise AssertionError("nothing is left to compute")


def table(out: Path):
    swept = lab.sweep(CASES, never, out / "toy_numpy", jobs=1, reuse=True)
    assert swept.failed == []
    return swept.table


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    return lab.sweep(CASES, toy.compute, out, jobs=1).table


def killed_sweep(out: Path, kills: int, dice: random.Random) -> None:
    """Kill the whole group at random moments, most of them while cases are computed and written."""
    for n in range(kills):
        process = start(out, "--jobs", "2")
        wait_for(out, min(len(runs(out)) + dice.choice([0, 1, 1, 2]), len(CASES)), process)
        time.sleep(dice.uniform(0, 0.25) if n % 4 else dice.uniform(0, 2))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=120)
        for path in runs(out):
            case = next(case for case in CASES if case.key() == path.name)
            assert lab.Store(path.parent).read(case) is not None
        if len(runs(out)) == len(CASES):
            shutil.rmtree(out)


def check_killed(out: Path, kills: int, undisturbed) -> None:
    killed_sweep(out, kills, random.Random(kills))
    code, errors = finish(start(out, "--jobs", "2"))
    assert code == 0, errors
    assert table(out).equals(undisturbed)
    assert not list(out.rglob(".partial-*"))


def test_kill_9_and_again(tmp_path, undisturbed):
    check_killed(tmp_path / "runs", 3, undisturbed)


@pytest.mark.nightly
def test_kill_9_and_again_many_times(tmp_path, undisturbed):
    check_killed(tmp_path / "runs", 25, undisturbed)


@pytest.mark.parametrize(
    "whole_group",
    [True, pytest.param(False, marks=pytest.mark.nightly)],
    ids=["terminal", "parent"],
)
def test_ctrl_c_stops_at_once_and_the_next_run_continues(tmp_path, whole_group):
    process = start(tmp_path, "--jobs", "2")
    wait_for(tmp_path, 2, process)
    if whole_group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        os.kill(process.pid, signal.SIGINT)
    code, errors = finish(process)
    assert code == 130
    assert "run it again to go on" in errors
    assert "Traceback" not in errors
    assert not list(tmp_path.rglob(".partial-*"))
    assert 2 <= len(runs(tmp_path)) < len(CASES)
    deadline = time.monotonic() + 20
    while living(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert living(process.pid) == []


def test_two_processes_share_the_work(tmp_path, undisturbed):
    log = tmp_path / "log"
    env = {**os.environ, "TOY_LOG": str(log)}
    both = [start(tmp_path, "--jobs", jobs, "--json", env=env) for jobs in ("1", "2")]
    for process in both:
        code, errors = finish(process)
        assert code == 0, errors
    computed = log.read_text().split()
    assert sorted(computed) == sorted(case.key() for case in CASES)
    assert table(tmp_path).equals(undisturbed)


def test_a_holder_that_dies_gives_its_case_back(tmp_path):
    case = CASES[0]
    store = lab.Store(tmp_path / "toy_numpy")
    store.open()
    code = (
        "import sys, time, filelock; lock = filelock.FileLock(sys.argv[1]); lock.acquire();"
        "print('held', flush=True); time.sleep(600)"
    )
    place = store.root / ".locks" / f"{case.key()}.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(place)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with store.lock(case.key(), 0.0) as mine:
            assert not mine
    finally:
        holder.kill()
        holder.communicate()
    with store.lock(case.key(), 5.0) as mine:
        assert mine


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))


def test_a_file_too_large_aborts_and_keeps_the_rest(tmp_path, undisturbed):
    small = [case for case in CASES if case.size == 150]
    lab.sweep(small, toy.compute, tmp_path / "toy_numpy", jobs=1)
    code, errors = finish(start(tmp_path, "--jobs", "1", preexec_fn=small_files))
    check_aborted(tmp_path, code, errors, "File too large")
    assert table_of(small, tmp_path).equals(undisturbed.filter(size=150))


def in_own_mounts(*command: str) -> list[str]:
    return ["unshare", "--user", "--map-root-user", "--mount", *command]


def can_mount() -> bool:
    if not shutil.which("unshare"):
        return False
    trial = in_own_mounts("mount", "-t", "tmpfs", "none", "/mnt")
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="needs a mount of its own")
def test_a_full_disk_aborts_and_keeps_the_rest(tmp_path):
    script = (
        'mount -t tmpfs -o size=3m none "$1" && '
        '"$2" -m advlab run "$3" --out "$1" --jobs 1; code=$?;'
        'cp -r "$1" "$4"; exit $code'
    )
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    names = [str(disk), sys.executable, str(TOY), str(copy)]
    done = subprocess.run(
        in_own_mounts("sh", "-c", script, "sh", *names),
        capture_output=True,
        text=True,
        cwd=TOY.parent,
        check=False,
    )
    check_aborted(copy, done.returncode, done.stderr, "No space left on device")
    assert 0 < len(runs(copy)) < len(CASES)


def check_aborted(out: Path, code: int, errors: str, reason: str) -> None:
    assert code == 2
    assert errors.splitlines()[-1].startswith("error: ")
    assert reason in errors
    assert "Traceback" not in errors
    assert not list(out.rglob(".partial-*"))
    for path in runs(out):
        case = next(case for case in CASES if case.key() == path.name)
        assert lab.Store(path.parent).read(case) is not None


def table_of(cases, out: Path):
    return lab.sweep(cases, never, out / "toy_numpy", jobs=1, reuse=True).table
