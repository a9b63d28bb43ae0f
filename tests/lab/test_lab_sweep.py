"""A sweep computes only what is missing; its table depends on the cases alone."""

import math
import os
import sys

import numpy as np
import polars as pl
import pytest
import torch
import toy_experiment as toy
from threadpoolctl import threadpool_info

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.core.progress import remaining
from advlab.lab.threads import one_thread


class Point(lab.Case):
    x: float
    label: str | None = None
    shape: tuple[int, ...] = (1, 2)


def square(case: Point) -> pl.DataFrame:
    return pl.DataFrame({"y": [case.x**2]})


def never(case: Point) -> pl.DataFrame:
    raise AssertionError("nothing is left to compute")


POINTS = [Point(x=float(x)) for x in range(4)]


def test_the_table_has_the_settings_and_the_rows_in_the_order_of_the_cases(tmp_path):
    cases = [Point(x=2.0, label="a", seed=4), Point(x=-3.0)]
    table = lab.sweep(cases, square, tmp_path, jobs=1).table
    expected = pl.DataFrame(
        {
            "seed": [4, 0],
            "replicates": [1, 1],
            "x": [2.0, -3.0],
            "label": ["a", None],
            "y": [4.0, 9.0],
        }
    )
    assert table.equals(expected)
    assert table.schema == expected.schema


def test_a_column_of_the_rows_wins_over_the_setting_of_that_name(tmp_path):
    case = Point(x=1.0, seed=5, replicates=2)
    rows = pl.DataFrame({"seed": [5, 6], "y": [0.0, 1.0]})
    assert lab.sweep([case], lambda case: rows, tmp_path, jobs=1).table["seed"].to_list() == [5, 6]


def test_a_second_sweep_reads_and_does_not_compute(tmp_path):
    first = lab.sweep(POINTS, square, tmp_path, jobs=1)
    again = lab.sweep(POINTS, never, tmp_path, jobs=1, reuse=True)
    assert again.table.equals(first.table)
    assert again.failed == []


def test_fresh_computes_again(tmp_path):
    lab.sweep(POINTS, square, tmp_path, jobs=1)
    again = lab.sweep(POINTS, lambda c: pl.DataFrame({"y": [7.0]}), tmp_path, jobs=1, fresh=True)
    assert again.table["y"].to_list() == [7.0] * 4


def test_more_seeds_compute_only_the_new_blocks(tmp_path):
    computed = []

    def compute(case: Point) -> pl.DataFrame:
        computed.extend(case.seeds)
        return pl.DataFrame({"seed": list(case.seeds)})

    for seeds in (20, 40):
        cases = [Point(x=0.0, **block) for block in lab.blocks(seeds, 10)]
        table = lab.sweep(cases, compute, tmp_path, jobs=1).table
        assert table["seed"].to_list() == list(range(seeds))
    assert computed == list(range(40))


def test_blocks_cover_the_seeds_once():
    for seeds in range(1, 30):
        cases = [lab.Case(**block) for block in lab.blocks(seeds, 7)]
        assert [seed for case in cases for seed in case.seeds] == list(range(seeds))
    with pytest.raises(AdvlabError, match="at least one seed"):
        lab.blocks(0, 7)


def test_a_failed_case_is_a_gap_with_a_reason_and_is_tried_again(tmp_path):
    def fails_at_two(case: Point) -> pl.DataFrame:
        if case.x == 2.0:
            raise ZeroDivisionError("x is two")
        return square(case)

    swept = lab.sweep(POINTS, fails_at_two, tmp_path, jobs=1)
    assert swept.table["x"].to_list() == [0.0, 1.0, 3.0]
    assert [(f.case["x"], f.reason) for f in swept.failed] == [(2.0, "ZeroDivisionError: x is two")]
    again = lab.sweep(POINTS, square, tmp_path, jobs=1)
    assert again.table.equals(lab.sweep(POINTS, square, tmp_path / "clean", jobs=1).table)
    assert again.failed == []
    assert list((tmp_path / "failed").iterdir()) == []


def test_all_cases_may_fail(tmp_path):
    swept = lab.sweep(POINTS, never, tmp_path, jobs=1)
    assert swept.table.is_empty()
    assert len(swept.failed) == 4


@pytest.mark.parametrize("file", ["case.json", "metrics.parquet", "arrays.safetensors", "run.json"])
def test_a_damaged_run_is_named_moved_aside_and_computed_again(tmp_path, capsys, file):
    cases = toy.recipe("smoke")
    first = lab.sweep(cases, toy.compute, tmp_path, jobs=1).table
    path = tmp_path / cases[1].key() / file
    path.write_bytes(path.read_bytes()[:-9])
    capsys.readouterr()
    again = lab.sweep(cases, toy.compute, tmp_path, jobs=1)
    assert again.table.equals(first)
    message = capsys.readouterr().err
    assert str(tmp_path / cases[1].key()) in message
    assert (tmp_path / "corrupt" / f"{cases[1].key()}-0" / file).exists()
    lab.sweep(cases, never, tmp_path, jobs=1, reuse=True)
    assert "corrupt" not in capsys.readouterr().err


def test_workers_and_no_workers_give_the_same_bits(tmp_path):
    cases = toy.recipe("laptop")
    alone = lab.sweep(cases, toy.compute, tmp_path / "alone", jobs=1)
    many = lab.sweep(cases, toy.compute, tmp_path / "many", jobs=2)
    assert many.table.equals(alone.table)
    stores = lab.Store(tmp_path / "alone"), lab.Store(tmp_path / "many")
    for case in cases:
        one, two = (store.read(case).arrays for store in stores)
        assert {k: v.tobytes() for k, v in one.items()} == {k: v.tobytes() for k, v in two.items()}


def test_workers_store_failures_too(tmp_path):
    def fails(case: Point) -> pl.DataFrame:
        return pl.DataFrame({"y": [math.sqrt(case.x - 1.5)]})

    swept = lab.sweep(POINTS, fails, tmp_path, jobs=2)
    assert swept.table["x"].to_list() == [2.0, 3.0]
    assert [failure.case["x"] for failure in swept.failed] == [0.0, 1.0]
    assert "ValueError" in swept.failed[0].reason


def test_one_thread_and_back():
    np.ones((2, 2)) @ np.ones((2, 2))
    before = [pool["num_threads"] for pool in threadpool_info()], torch.get_num_threads()
    torch.set_num_threads(2)
    with one_thread():
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
        assert torch.get_num_threads() == 1
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before[1])
    assert [pool["num_threads"] for pool in threadpool_info()] == before[0]


def test_cases_run_on_one_thread_longest_first(tmp_path):
    seen = []

    class Costly(Point):
        @property
        def cost(self) -> float:
            return self.x

    def compute(case: Costly) -> pl.DataFrame:
        seen.append((case.x, torch.get_num_threads()))
        return square(case)

    cases = [Costly(x=x) for x in (1.0, 3.0, 2.0)]
    table = lab.sweep(cases, compute, tmp_path, jobs=1).table
    assert seen == [(3.0, 1), (2.0, 1), (1.0, 1)]
    assert table["x"].to_list() == [1.0, 3.0, 2.0]


def test_the_time_that_remains_goes_by_cost():
    assert remaining(elapsed=10.0, done=2.0, total=8.0) == 30.0
    assert remaining(elapsed=10.0, done=0.0, total=8.0) == math.inf


def test_ctrl_c_keeps_what_is_done_and_says_so(tmp_path, capsys):
    def stopped(case: Point) -> pl.DataFrame:
        if case.x == 2.0:
            raise KeyboardInterrupt
        return square(case)

    with pytest.raises(KeyboardInterrupt):
        lab.sweep(POINTS, stopped, tmp_path, jobs=1)
    message = capsys.readouterr().err
    assert "2 of 4 cases are stored" in message
    assert "run it again to go on" in message
    assert len(lab.sweep(POINTS[:2], never, tmp_path, jobs=1, reuse=True).table) == 2


def test_cases_must_differ(tmp_path):
    with pytest.raises(AdvlabError, match="same settings"):
        lab.sweep([POINTS[0], Point(x=0.0)], square, tmp_path, jobs=1)


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(AdvlabError, match="another --out"):
        lab.sweep(POINTS, square, tmp_path / "runs" / "toy", jobs=1)
    assert (tmp_path / "runs").read_text() == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc takes no new folders")
def test_an_unwritable_folder():
    with pytest.raises(AdvlabError, match="another --out"):
        lab.sweep(POINTS, square, "/proc/self/advlab", jobs=1)
