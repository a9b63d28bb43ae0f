"""Finished batches on disk, so that a killed evaluation goes on where it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.files import read_tensors, sha256, write_tensors, write_text
from ..core.fingerprint import digest
from ..threats import Threat
from .outcomes import Outcomes
from .suites import Plan


class BatchStore:
    """A folder with one safetensors file per batch, each written whole.

    It belongs to one model, one data set and one set of settings, which its key sums up; the batch
    size is kept too, since memory may differ when the run goes on.

    Args:
        folder: where the files are; nothing is kept if None.
        key: the name of everything that decides the result, see `batch_key`.
    """

    def __init__(self, folder: Path | None, key: str):
        self.folder, self.key = folder, key

    def batch_size(self, choose: Callable[[], int]) -> int:
        """The size that the batches here have, or else a chosen one, which is noted."""
        if self.folder is None:
            return choose()
        about = self._about()
        if about is None:
            about = {"key": self.key, "batch": choose()}
            self._write(json.dumps(about))
        if about.get("key") != self.key:
            raise AdvlabError(
                f"{self.folder} must hold batches of the same model, data and settings",
                "batches of others",
                "choose another folder, or start anew without resuming",
            )
        return int(about["batch"])

    def read(self, first: int) -> Outcomes | None:
        """The batch that starts at this row, or None if it is not here."""
        path = self._path(first)
        if path is None or not path.is_file():
            return None
        tensors, notes = read_tensors(path)
        if notes.get("key") != self.key:
            return None
        return Outcomes.read(tensors, notes["rows"])

    def write(self, first: int, outcomes: Outcomes) -> None:
        """Keep the batch that starts at this row."""
        path = self._path(first)
        if path is not None:
            with _writing(path):
                write_tensors(path, outcomes.tensors(), {"key": self.key, "rows": outcomes.notes()})

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
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            raise AdvlabError(f"{path} as it was written", "a damaged file", "delete it") from None

    def _write(self, text: str) -> None:
        folder = self.folder or Path()
        with _writing(folder):
            write_text(folder / "about.json", text)


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


def batch_key(
    model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, threat: Threat, plan: Plan,
    certificates: object, batch: int | None, seed: int,
) -> str:  # fmt: skip
    """A name for everything that decides the result: same name, same numbers, same kind of file."""
    parts = [
        digest(model), digest(x), digest(y), repr(threat),
        plan.canonical(), repr(certificates), str(batch), str(seed), torch.__version__,
        *Outcomes.__dataclass_fields__,
    ]  # fmt: skip
    return sha256("/".join(parts).encode())[:32]
