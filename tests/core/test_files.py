"""Files are whole or not there, and what is damaged is named."""

import hashlib
import subprocess
import sys

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.files import (
    file_checksum,
    read_tensors,
    remove,
    replacing,
    sha256,
    write_synced,
    write_tensors,
    write_text,
)


def test_a_text_is_written_into_a_new_folder_and_replaced(tmp_path):
    path = tmp_path / "new" / "page.html"
    for text in ("one", "größer"):
        write_text(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert [one.name for one in path.parent.iterdir()] == ["page.html"]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "table.csv"
    write_text(path, "old")

    def fails():
        with replacing(path) as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_synced_file_must_be_new(tmp_path):
    write_synced(tmp_path / "a", b"1")
    with pytest.raises(FileExistsError):
        write_synced(tmp_path / "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"1"


def test_remove_takes_files_folders_links_and_nothing(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    (tmp_path / "link").symlink_to(kept)
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    for name in ("link", "folder", "absent"):
        remove(tmp_path / name)
    assert list(tmp_path.iterdir()) == [kept]
    assert (kept / "file").read_text() == "mine"


def test_checksums(tmp_path):
    data = bytes(range(256)) * 1000
    (tmp_path / "data").write_bytes(data)
    assert file_checksum(tmp_path / "data") == sha256(data) == hashlib.sha256(data).hexdigest()
    assert file_checksum(tmp_path / "data", "md5") == hashlib.md5(data).hexdigest()


def test_tensors_come_back_with_their_notes(tmp_path):
    path = tmp_path / "new" / "w.safetensors"
    tensors = {"w": torch.arange(6.0).reshape(2, 3).T, "n": torch.tensor(3)}
    write_tensors(path, tensors, {"step": "7"})
    found, notes = read_tensors(path)
    assert notes == {"step": "7"}
    assert {name: value.tolist() for name, value in found.items()} == {
        name: value.tolist() for name, value in tensors.items()
    }


def test_the_same_tensors_and_notes_are_the_same_bytes(tmp_path):
    """safetensors itself writes notes in a random order."""
    notes = {"advlab": "{}", "z": 'é"\n', "b": "2"}
    for n in range(8):
        write_tensors(tmp_path / str(n), {"w": torch.arange(3), "a é": torch.ones(2, 2)}, notes)
    assert len({file_checksum(tmp_path / str(n)) for n in range(8)}) == 1
    assert read_tensors(tmp_path / "0", sealed=True)[1] == notes


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_damaged_tensors_are_named(tmp_path, damage):
    path = tmp_path / "w.safetensors"
    if damage == "cut":
        write_tensors(path, {"w": torch.zeros(100)}, {})
        path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(AdvlabError, match=r"w\.safetensors must be a whole"):
        read_tensors(path)


def test_the_core_that_the_lab_needs_does_not_import_torch():
    names = "files, fingerprint, identity, intervals, progress, reachable, config, errors, checks"
    code = f"from advlab.core import {names}; import sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
