"""kill -9 at random moments: the same command then ends in the bits of a run left alone."""

import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from . import Fault, subjects

STRUCK = "struck.txt"
STORED = ("run.json", "run.safetensors")
"""One of these, or a batch, is there once something was stored."""


def kill_all(trials: int) -> list[Fault]:
    """The three kinds of long work: a sweep, a training, an attack."""
    return [
        _kind("kill -9 of run", trials, _sweep),
        _kind("kill -9 of fit", trials, _training),
        _kind("kill -9 of attack", trials, _attack),
    ]


def _kind(kind: str, trials: int, trial: Callable[[Path, float | None], str]) -> Fault:
    """`trial(folder, moment)` kills after `moment` seconds (None: never), then finishes.

    The moments are spread over the time that the command takes when it is left alone, measured
    on this machine, so that a slow or busy one is not struck only while it starts.
    """
    random.seed(kind)
    with tempfile.TemporaryDirectory() as root:
        begun = time.perf_counter()
        alone = trial(Path(root) / "alone", None)
        usual = time.perf_counter() - begun
        right, stored = [], 0
        for n in range(trials):
            folder = Path(root) / str(n)
            right.append(trial(folder, usual * random.random()) == alone)
            stored += (folder / STRUCK).read_text() == "stored"
    print(f"  {kind}: {stored} of {trials} after something was stored", flush=True)
    return Fault(kind, trials, trials, sum(right), trials - sum(right))


def _struck(command: list[str], folder: Path, moment: float | None) -> None:
    if moment is None:
        return
    process = subjects.start(command, folder)
    time.sleep(moment)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    stored = any(path.name in STORED or path.match("batch-*") for path in folder.rglob("*"))
    (folder / STRUCK).write_text("stored" if stored else "nothing")


def _sweep(folder: Path, moment: float | None) -> str:
    subjects.prepare(folder)
    command = subjects.run_command(folder / "runs")
    _struck(command, folder, moment)
    code, out, errors = subjects.finished(command, folder)
    return out if code == 0 else errors


def _training(folder: Path, moment: float | None) -> str:
    subjects.prepare(folder)
    command = subjects.fit_command(folder / "run.safetensors")
    _struck(command, folder, moment)
    code, out, errors = subjects.finished(command, folder)
    return out if code == 0 else errors


def _attack(folder: Path, moment: float | None) -> str:
    subjects.prepare(folder)
    out = folder / "attack"
    _struck(subjects.attack_command(out), folder, moment)
    code, text, errors = subjects.finished(subjects.attack_command(out, "--resume"), folder)
    if code:
        return errors
    found = json.loads(text.splitlines()[-1])
    kept = ("clean_error", "robust_error", "certified_error", "n")
    return json.dumps({name: found[name] for name in kept})
