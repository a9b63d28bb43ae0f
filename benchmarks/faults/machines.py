"""Trouble with the machine: full and read-only disks, stopped holders of locks, dead workers."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import Fault, subjects

DEADLY = """
import os, signal
from powers import ABOUT, Case, figure, recipe, verdicts
from powers import compute as sound

def compute(case):
    if case.size == 20 and case.seed == 0 and not os.environ.get("SPARE"):
        {deed}
    return sound(case)
"""


def machine_faults() -> list[Fault]:
    """Each is told in words, loses nothing, and the same command ends well afterwards."""
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    return [
        _recovered("full disk", _full_disk),
        _recovered("read-only disk", _read_only),
        _recovered("stopped holder of a lock", _stopped),
        _recovered("worker killed", lambda folder: _deadly(folder, kill)),
        _recovered("worker out of memory", lambda folder: _deadly(folder, "bytearray(2**40)")),
    ]


def _recovered(kind: str, trial: Callable[[Path], tuple[bool, str] | None]) -> Fault:
    """`trial` says whether the fault was told, and the final output; None where it cannot be."""
    with tempfile.TemporaryDirectory() as root:
        alone, folder = Path(root) / "alone", Path(root) / "struck"
        for place in (alone, folder):
            subjects.prepare(place)
        _, right, _ = subjects.finished(subjects.run_command(alone / "runs"), alone)
        found = trial(folder)
    if found is None:
        print(f"  {kind}: not possible on this machine")
        return Fault(kind, 0, 0, 0, 0)
    told, final = found
    same = final.replace("deadly", "powers") == right
    return Fault(kind, 1, int(told), int(same), int(not told and not same))


@contextmanager
def _small_disk(place: Path, options: str) -> Iterator[bool]:
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True
    )
    try:
        yield mounted.returncode == 0
    finally:
        subprocess.run(["umount", str(place)], capture_output=True)


def _full_disk(folder: Path) -> tuple[bool, str] | None:
    with _small_disk(folder / "disk", "size=48k") as there:
        if not there:
            return None
        command = subjects.run_command(folder / "disk" / "runs")
        code, _, errors = subjects.finished(command, folder)
        told = code != 0 and "Traceback" not in errors
        subprocess.run(["mount", "-o", "remount,size=64m", str(folder / "disk")], check=True)
        return told, subjects.finished(command, folder)[1]


def _read_only(folder: Path) -> tuple[bool, str] | None:
    with _small_disk(folder / "disk", "size=64m") as there:
        if not there:
            return None
        command = subjects.run_command(folder / "disk" / "runs")
        subprocess.run(["mount", "-o", "remount,ro", str(folder / "disk")], check=True)
        code, _, errors = subjects.finished(command, folder)
        told = code == 2 and "Traceback" not in errors
        subprocess.run(["mount", "-o", "remount,rw", str(folder / "disk")], check=True)
        return told, subjects.finished(command, folder)[1]


def _stopped(folder: Path) -> tuple[bool, str]:
    """Another sweep is stopped in the middle; ours waits for it, and ends when it goes on."""
    command = subjects.run_command(folder / "runs")
    other = subjects.start(command, folder)
    while not list((folder / "runs").rglob("metrics.parquet")) and other.poll() is None:
        time.sleep(0.01)
    os.killpg(other.pid, signal.SIGSTOP)
    ours = subjects.start(command, folder)
    time.sleep(8)
    waits = ours.poll() is None
    os.killpg(other.pid, signal.SIGCONT)
    other.communicate(timeout=120)
    out, _ = ours.communicate(timeout=120)
    return waits or ours.returncode == 0, out


def _deadly(folder: Path, deed: str) -> tuple[bool, str]:
    (folder / "deadly.py").write_text(DEADLY.format(deed=deed))
    command = [
        part.replace("powers.py", "deadly.py") for part in subjects.run_command(folder / "runs")
    ]
    code, _, errors = subjects.finished(command, folder)
    told = code == 3 and "failed" in errors
    os.environ["SPARE"] = "1"
    try:
        return told, subjects.finished(command, folder)[1]
    finally:
        del os.environ["SPARE"]
