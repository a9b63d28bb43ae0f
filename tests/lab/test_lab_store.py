"""A run is whole or absent, is checked when read, and says what is wrong when it is damaged."""

import errno
import json
import os

import numpy as np
import polars as pl
import pytest

from advlab.core.errors import AdvlabError
from advlab.core.files import sha256
from advlab.lab import Case, Computed, Store
from advlab.lab import store as module
from advlab.lab.store import Corrupt, encode


class Point(Case):
    x: float = 1.0


class PowerCut(BaseException):
    """Stands for kill -9: nothing after it runs, clean-up included."""


POINT = Point(x=0.5, seed=3)
TABLE = pl.DataFrame({"y": [1.5, -0.0], "name": ["a", "b"]})
ARRAYS = {"w": np.arange(6.0).reshape(2, 3).T, "scalar": np.float32(2.0)}
FILES = ["case.json", "metrics.parquet", "arrays.safetensors", "run.json"]


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "toy")
    store.open()
    return store


def written(store):
    store.write(POINT, encode(Computed(TABLE, ARRAYS)), seconds=1.0)
    return store.root / POINT.key()


def test_reads_back_what_was_written(store):
    folder = written(store)
    run = store.read(POINT)
    assert run.table.equals(TABLE)
    assert set(run.arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(run.arrays[name], array)
        assert run.arrays[name].shape == array.shape
    bare = store.read(POINT, arrays=False)
    assert (bare.arrays, bare.table.equals(TABLE)) == ({}, True)
    assert sorted(os.listdir(folder)) == sorted(FILES)
    assert json.loads((folder / "case.json").read_text()) == POINT.model_dump()


def test_no_arrays_no_file(store):
    store.write(POINT, encode(TABLE), seconds=1.0)
    assert not (store.root / POINT.key() / "arrays.safetensors").exists()
    assert store.read(POINT).arrays == {}


def test_a_case_without_a_run_reads_as_none(store):
    assert store.read(POINT) is None


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", ["truncate", "flip", "remove", "empty"])
def test_every_damage_of_every_file_is_named(store, file, damage):
    path = written(store) / file
    data = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    elif damage == "flip":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    else:
        path.write_bytes(data[: len(data) // 2 if damage == "truncate" else 0])
    with pytest.raises(Corrupt, match=POINT.key()):
        store.read(POINT)


def test_every_byte_of_a_run_counts(store):
    for path in sorted(written(store).iterdir()):
        whole = path.read_bytes()
        for place in range(0, len(whole), max(1, len(whole) // 200)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x20]) + whole[place + 1 :])
            with pytest.raises(Corrupt):
                store.read(POINT)
        path.write_bytes(whole)
    assert store.read(POINT).table.equals(TABLE)


def test_a_run_keeps_the_stamp_of_its_time(store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module.provenance, "versions", lambda: {"advlab": "0.0.1"})
        patch.setattr(module.provenance, "commit", lambda: "an older one")
        folder = written(store)
    run = store.read(POINT)
    assert (run.versions, run.commit) == ({"advlab": "0.0.1"}, "an older one")
    assert run.sha256 == sha256((folder / "run.json").read_bytes())


def test_links_in_a_circle_are_damage_and_a_closed_file_is_not(store, monkeypatch):
    path = written(store) / "run.json"
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(Corrupt, match="symbolic links"):
        store.read(POINT)
    assert store.code(POINT) is None
    path.unlink()

    def closed(_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(module, "_read", closed)
    with pytest.raises(AdvlabError, match="Permission denied") as caught:
        store.read(POINT)
    assert not isinstance(caught.value, Corrupt)


def test_the_settings_of_another_case_are_not_taken(store):
    os.rename(written(store), store.root / Point(x=0.25).key())
    with pytest.raises(Corrupt, match="other settings"):
        store.read(Point(x=0.25))


def test_damaged_runs_are_kept_apart(store):
    for n in range(2):
        written(store)
        store.set_aside(POINT)
        assert (store.root / "corrupt" / f"{POINT.key()}-{n}" / "case.json").exists()
    assert store.read(POINT) is None


@pytest.mark.parametrize("call", range(9))
def test_a_power_cut_at_any_call_leaves_a_whole_run_or_none(store, monkeypatch, call):
    calls = iter(range(100))

    def cut(real):
        def step(*arguments, **settings):
            if next(calls) == call:
                raise PowerCut
            return real(*arguments, **settings)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", cut(os.fsync))
        patch.setattr(os, "rename", cut(os.rename))
        patch.setattr(os, "open", cut(os.open))
        patch.setattr(module, "remove", lambda path: None)
        with pytest.raises(PowerCut):
            written(store)
    run = store.read(POINT)
    assert run is None or run.table.equals(TABLE)
    store.clean()
    assert not list(store.root.glob(".partial-*"))
    if run is None:
        written(store)
    assert store.read(POINT).table.equals(TABLE)


@pytest.mark.parametrize("call", range(10))
def test_a_power_cut_while_a_run_is_replaced_leaves_the_old_the_new_or_none(
    store, monkeypatch, call
):
    written(store)
    new = TABLE.with_columns(y=pl.lit(7.0))
    calls = iter(range(100))

    def cut(real):
        def step(*arguments, **settings):
            if next(calls) == call:
                raise PowerCut
            return real(*arguments, **settings)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", cut(os.fsync))
        patch.setattr(os, "rename", cut(os.rename))
        patch.setattr(module, "remove", lambda path: None)
        try:
            store.write(POINT, encode(new), seconds=2.0, code="other")
        except PowerCut:
            assert call < 9
    run = store.read(POINT)
    assert run is None or (run.code, run.table["y"][0]) in [("", 1.5), ("other", 7.0)]
    store.clean()
    assert not list(store.root.glob(".partial-*"))
    store.write(POINT, encode(new), seconds=2.0, code="other")
    assert (store.read(POINT).code, store.code(POINT)) == ("other", "other")
    assert store.read(POINT).table.equals(new)


def test_a_run_from_before_codes_were_recorded_has_none(store):
    path = written(store) / "run.json"
    record = json.loads(path.read_text())
    for name in ("code", "data", "seal", "cpu", "memory"):
        del record[name]
    path.write_text(json.dumps(record))
    assert (store.read(POINT).cpu, store.read(POINT).memory) == (0.0, 0)
    assert (store.read(POINT).code, store.code(POINT)) == ("", "")
    assert store.code(Point(x=9.0)) is None


def test_a_partial_run_whose_writer_lives_is_left_alone(store):
    part = store.root / f".partial-{POINT.key()}-0"
    part.mkdir()
    other = Store(store.root)
    with other.lock(POINT.key(), 0.0) as mine:
        assert mine
        with store.lock(POINT.key(), 0.0) as second:
            assert not second
        store.clean()
        assert part.exists()
    store.clean()
    assert not part.exists()


def test_a_failure_is_stored_until_there_is_a_run(store):
    try:
        raise FloatingPointError("the loss is\nnot finite")
    except FloatingPointError as error:
        store.write_failure(POINT, error)
    record = json.loads((store.root / "failed" / f"{POINT.key()}.json").read_text())
    assert record["case"] == POINT.model_dump()
    assert record["traceback"][-1] == "not finite"
    assert store.failure(POINT) == "FloatingPointError: the loss is not finite"
    written(store)
    assert store.failure(POINT) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_damaged_failure_is_still_a_failure(store, text):
    (store.root / "failed").mkdir()
    (store.root / "failed" / f"{POINT.key()}.json").write_text(text)
    assert "damaged" in store.failure(POINT)


@pytest.mark.parametrize(
    "result", [{"y": 1.0}, None, pl.DataFrame(), pl.DataFrame({"y": []}, schema={"y": pl.Float64})]
)
def test_a_result_must_be_rows(result):
    with pytest.raises(AdvlabError, match="compute gives"):
        encode(result)


def test_a_full_disk_leaves_nothing_behind(store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    before = written(store).stat()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AdvlabError, match="No space left"):
        store.write(Point(x=9.0), encode(TABLE), seconds=1.0)
    assert sorted(p.name for p in store.root.iterdir()) == sorted([".locks", POINT.key()])
    assert (store.root / POINT.key()).stat() == before
