"""Runs that two experiments have in common: taken over whole, and only if nothing differs."""

import json

import polars as pl
import pytest

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.lab.sharing import take_over
from advlab.lab.store import Store, encode

CODE = "0123456789abcdef"


class Case(lab.Case):
    size: int = 3


def stored(folder, case, code=CODE) -> Store:
    store = Store(folder)
    store.open()
    with store.lock(case.key(), 0.0):
        store.write(case, encode(pl.DataFrame({"value": [case.size]})), 1.5, code)
    return store


def test_a_run_is_taken_over_with_its_bytes_and_not_twice(tmp_path):
    case = Case(size=7)
    one = stored(tmp_path / "a", case)
    assert take_over([case, Case(size=8)], CODE, tmp_path / "b", [tmp_path / "a"]) == 1
    two = Store(tmp_path / "b")
    assert two.read(case).sha256 == one.read(case).sha256
    assert two.read(case).table["value"].to_list() == [7]
    assert two.read(Case(size=8)) is None
    assert take_over([case], CODE, tmp_path / "b", [tmp_path / "a"]) == 0


def test_a_run_of_other_code_stays_where_it_is(tmp_path):
    case = Case()
    stored(tmp_path / "a", case, code="fedcba9876543210")
    assert take_over([case], CODE, tmp_path / "b", [tmp_path / "a", tmp_path / "none"]) == 0
    assert not Store(tmp_path / "b").has(case)


def test_a_run_of_other_code_here_is_replaced(tmp_path):
    case = Case()
    stored(tmp_path / "a", case)
    stored(tmp_path / "b", case, code="fedcba9876543210")
    assert take_over([case], CODE, tmp_path / "b", [tmp_path / "a"]) == 1
    assert Store(tmp_path / "b").code(case) == CODE


def test_a_damaged_run_is_not_taken_over(tmp_path):
    case = Case()
    stored(tmp_path / "a", case)
    (tmp_path / "a" / case.key() / "metrics.parquet").write_bytes(b"no parquet")
    assert take_over([case], CODE, tmp_path / "b", [tmp_path / "a"]) == 0
    assert not Store(tmp_path / "b").has(case)


def test_settings_that_were_edited_are_not_taken_over(tmp_path):
    case = Case(size=7)
    stored(tmp_path / "a", case)
    record = tmp_path / "a" / case.key() / "case.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "size": 9}))
    assert take_over([case], CODE, tmp_path / "b", [tmp_path / "a"]) == 0


@pytest.mark.parametrize("name", ["cgro/fig1", "generalization/fig2", "generalization/fig14"])
def test_without_data_one_line_names_the_command_and_nothing_is_written(
    name, tmp_path, monkeypatch
):
    monkeypatch.setenv("ADVLAB_DATA", str(tmp_path / "empty"))
    with pytest.raises(AdvlabError, match=r"`advlab data fetch (cifar10|mnist)`") as caught:
        lab.run(name, scale="laptop", jobs=1, out=tmp_path / "runs")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()
