"""One bit is flipped in a file that advlab wrote: `advlab verify` or the reader itself says so."""

import random
import shutil
import tempfile
from pathlib import Path

from . import Fault, subjects


def flip_bits(trials: int) -> list[Fault]:
    """Over every kind of file: runs, results, checkpoints, evaluations."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "sound"
        subjects.prepare(folder)
        commands = (
            subjects.run_command(folder / "runs"),
            subjects.fit_command(folder / "run.safetensors"),
            subjects.attack_command(folder / "attack"),
        )
        for command in commands:
            code, _, errors = subjects.finished(command, folder)
            if code:
                raise RuntimeError(errors)
        share = trials // 3
        return [
            _stored("bit flips in runs and results", folder / "runs", trials - 2 * share),
            _checkpoint("bit flips in checkpoints", folder / "run.safetensors", share),
            _stored("bit flips in evaluations", folder / "attack", share),
        ]


def _stored(kind: str, store: Path, trials: int) -> Fault:
    from advlab.lab.verify import verify
    from advlab.report.result import FILES

    def problems() -> list:
        return [problem for checked in verify(store) for problem in checked.problems]

    random.seed(kind)
    files = [
        path
        for path in sorted(store.rglob("*"))
        if path.is_file() and ".locks" not in path.parts and path.stat().st_size
    ]
    if any(path.name.startswith("result-") for path in files):
        # Pictures and tables beside a result are drawn from it: nothing is read from them.
        files = [path for path in files if path.name not in FILES]
    if problems():
        raise RuntimeError("the sound store has problems already")
    found = 0
    for _ in range(trials):
        path = random.choice(files)
        whole = path.read_bytes()
        path.write_bytes(_flipped(whole))
        found += bool(problems())
        path.write_bytes(whole)
    return Fault(kind, trials, found, found, trials - found)


def _checkpoint(kind: str, path: Path, trials: int) -> Fault:
    from advlab.core.errors import AdvlabError
    from advlab.training.checkpoints import read_state

    random.seed(kind)
    bad, found = path.with_name("flipped.safetensors"), 0
    for _ in range(trials):
        shutil.copy(path, bad)
        bad.write_bytes(_flipped(bad.read_bytes()))
        try:
            read_state(bad)
        except AdvlabError:
            found += 1
    return Fault(kind, trials, found, found, trials - found)


def _flipped(data: bytes) -> bytes:
    place, bit = random.randrange(len(data)), random.randrange(8)
    return data[:place] + bytes([data[place] ^ (1 << bit)]) + data[place + 1 :]
