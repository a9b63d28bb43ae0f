"""Finished batches on disk, so that a killed evaluation goes on where it was."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ..core.errors import AdvlabError
from ..core.files import read_tensors, sha256, write_tensors, write_text
from ..core.fingerprint import code_fingerprint
from ..core.identity import Fingerprint, differences
from ..losses import evaluating
from ..threats import Threat
from .outcomes import Outcomes
from .suites import Plan


class BatchStore:
    """A folder with one safetensors file per batch, each written whole.

    It belongs to one model, one data set and one set of settings, which its parts tell; the batch
    size is kept too, since memory may differ when the run goes on. All files have checksums: what
    is damaged is computed again, with a line on stderr.

    Args:
        folder: where the files are; nothing is kept if None.
        parts: everything that decides the result, see `batch_parts`.
        reuse: keep the batches of another evaluation, with a line that says what differs.
    """

    def __init__(
        self, folder: Path | None, parts: Mapping[str, str] | None = None, reuse: bool = False
    ):
        self.folder, self.parts, self.reuse = folder, dict(parts or {}), reuse
        self.key = _seal(self.parts)

    def batch_size(self, choose: Callable[[], int]) -> int:
        """The size that the batches here have, or else a chosen one, which is noted."""
        if self.folder is None:
            return choose()
        about = self._about()
        if about is None:
            code = code_fingerprint(f"{__package__}.evaluate:evaluate")
            about = {"parts": self.parts, "batch": choose(), "code": code}
            self._write(json.dumps({**about, "sha256": _seal(about)}))
        changed = differences(about["parts"], self.parts)
        if changed and self.reuse:
            _say(f"{self.folder} holds batches {changed}; they are kept, as reuse asks")
            self.parts, self.key = about["parts"], _seal(about["parts"])
        elif changed:
            raise AdvlabError(
                f"{self.folder} must hold batches of the same evaluation",
                f"some {changed}",
                "choose another folder, start anew without resuming, or keep them with reuse",
            )
        return int(about["batch"])

    def read(self, first: int, data: str = "") -> Outcomes | None:
        """The batch that starts at this row, or None if it is not here or damaged.

        Args:
            first: its first row.
            data: a digest of its data where they are a stream, of which the parts know nothing.
        """
        path = self._path(first)
        if path is None or not path.is_file():
            return None
        try:
            tensors, notes = read_tensors(path, sealed=True)
        except AdvlabError:
            _say(f"{path} is damaged; its rows are evaluated again")
            return None
        if notes.get("key") != self.key:
            return None
        if notes.get("data", "") != data:
            self._other_data(first)
        return Outcomes.read(tensors, notes["rows"])

    def write(self, first: int, outcomes: Outcomes, data: str = "") -> None:
        """Keep the batch that starts at this row."""
        path = self._path(first)
        if path is not None:
            notes = {"key": self.key, "rows": outcomes.notes(), "data": data}
            with _writing(path):
                write_tensors(path, outcomes.tensors(), notes)

    def _other_data(self, first: int) -> None:
        came = f"made with other data: the batch that begins at row {first} differs"
        if self.reuse:
            _say(f"{self.folder} holds batches {came}; they are kept, as reuse asks")
            return
        raise AdvlabError(
            f"{self.folder} must hold batches of the same evaluation",
            f"some {came}",
            "rows must come in the same order each time (shuffle=False); choose another folder, "
            "start anew without resuming, or keep them with reuse",
        )

    def clear(self) -> None:
        """Forget all batches."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in (*self.folder.glob("batch-*.safetensors"), self.folder / "about.json"):
            path.unlink(missing_ok=True)

    def _path(self, first: int) -> Path | None:
        return None if self.folder is None else self.folder / f"batch-{first:08d}.safetensors"

    def _about(self) -> dict[str, Any] | None:
        path = (self.folder or Path()) / "about.json"
        try:
            about = json.loads(path.read_bytes())
            seal = about.pop("sha256")
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError):
            about, seal = {}, ""
        if seal != _seal(about):
            _say(f"{path} is damaged; batches of the same evaluation are kept, others made anew")
            return None
        return about

    def _write(self, text: str) -> None:
        folder = self.folder or Path()
        with _writing(folder):
            write_text(folder / "about.json", text)


def _seal(about: Mapping[str, object]) -> str:
    return sha256(json.dumps(about, sort_keys=True).encode())


def _say(line: str) -> None:
    print(f"note: {line}", file=sys.stderr)


class _writing:
    """Disk troubles as one line that names the place."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, OSError):
            raise AdvlabError(
                f"{self.path} takes new files",
                error.strerror or error,
                "batches already written are whole; make room, or choose another place",
            ) from None


def batch_parts(
    computing: Callable[..., Outcomes], model: Callable[[Tensor], Tensor], x: Tensor | str,
    y: Tensor | str, threat: Threat, plan: Plan, certificates: object, batch: int | None, seed: int,
    points: bool = False, budget: float | None = None,
) -> dict[str, str]:  # fmt: skip
    """All that decides the result, by name: same parts, same numbers, same kind of file.

    Args:
        computing: the function that evaluates a batch, whose code counts.
        model: the model; its code, layers, weights and types count, wherever it was loaded from.
        x, y: the data, by content; of a stream a word, since each batch is checked by itself.
        threat, plan, certificates, batch, seed, points, budget: the settings.
    """
    found = Fingerprint()
    with evaluating(model):
        found.model(model)
    found.add("data: x", x)
    found.add("data: y", y)
    settings = {"threat set": threat, "attacks": plan.members, "certificates": certificates}
    for name, value in {
        **settings,
        "batch": batch,
        "seed": seed,
        "points": points,
        "budget": budget,
    }.items():
        found.add(f"settings: {name}", value)
    found.add("code: what is stored of a batch", computing, list(Outcomes.__dataclass_fields__))
    found.versions()
    return found.parts()
