"""Runs that several experiments read are computed once, and again when they must be."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.lab.shared import sharing

calls: list[int] = []


class Base(lab.Case):
    size: int = 2


def base(case: Base) -> lab.Computed:
    calls.append(case.size)
    if case.size < 0:
        raise ValueError("no such size")
    return lab.Computed(pl.DataFrame({"n": [case.size]}), {"a": np.arange(case.size)})


class Longer(lab.Case):
    size: int = 2


def longer(case: Longer) -> lab.Computed:
    below = lab.shared(Base(size=case.size), base, "bases")
    return lab.Computed(below.table, {"a": np.append(below.arrays["a"], 99)})


def compute(case: Longer) -> pl.DataFrame:
    one = lab.shared(Base(size=case.size), base, "bases")
    two = lab.shared(case, longer, "longer")
    return pl.DataFrame({"total": [int(one.arrays["a"].sum()), int(two.arrays["a"].sum())]})


@pytest.fixture(autouse=True)
def _none_called():
    calls.clear()


def test_two_experiments_compute_a_shared_run_once_and_it_lies_beside_them(tmp_path):
    tables = [
        lab.sweep([Longer(size=4)], compute, tmp_path / "paper" / item, jobs=1).table
        for item in ("fig1", "fig2")
    ]
    assert tables[0]["total"].to_list() == [6, 105]
    assert tables[0].equals(tables[1])
    assert calls == [4]
    folders = {path.name for path in (tmp_path / "paper").iterdir()}
    assert folders == {"fig1", "fig2", "bases", "longer"}


def test_other_settings_are_another_run_and_damage_is_computed_again(tmp_path):
    with sharing(tmp_path):
        lab.shared(Base(size=3), base, "bases")
        lab.shared(Base(size=5), base, "bases")
        assert calls == [3, 5]
        file = tmp_path / "bases" / Base(size=3).key() / "arrays.safetensors"
        Path(file).write_bytes(b"damaged")
        again = lab.shared(Base(size=3), base, "bases")
    assert calls == [3, 5, 3]
    assert again.arrays["a"].tolist() == [0, 1, 2]


def test_a_shared_run_that_fails_says_why_in_one_line_and_leaves_no_run(tmp_path):
    with sharing(tmp_path), pytest.raises(AdvlabError, match="no such size"):
        lab.shared(Base(size=-1), base, "bases")
    assert not (tmp_path / "bases" / Base(size=-1).key()).exists()


def test_outside_of_a_sweep_nothing_is_stored_and_a_memory_keeps_what_it_is_given():
    lab.shared(Base(size=3), base, "bases")
    lab.shared(Base(size=3), base, "bases")
    assert calls == [3, 3]
    memory: dict[str, lab.Stored] = {}
    with lab.remembering(memory):
        first = lab.shared(Base(size=3), base, "bases")
        with lab.remembering({}):
            assert lab.shared(Base(size=3), base, "bases") is first
    assert calls == [3, 3, 3]
    assert len(memory) == 1
