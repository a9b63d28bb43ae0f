"""A sweep on a Ray cluster gives the bits of a local one, whatever happens to its workers."""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
import toy_experiment
import toy_numpy

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.core.files import file_checksum
from advlab.lab.loader import name

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason='needs pip install "advlab[cluster]"'
)
ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # loopback only
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": uuid.uuid4().hex,  # so that none is left in the home folder
}


class Point(lab.Case):
    x: float


def square(case: Point) -> pl.DataFrame:
    return pl.DataFrame({"y": [case.x**2]})


def never(case: Point) -> pl.DataFrame:
    raise AssertionError("nothing is left to compute")


POINTS = [Point(x=float(x)) for x in range(6)]


@pytest.fixture(scope="module")
def cluster():
    """The address of a cluster with two cores that this process has joined."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.delenv("RAY_ADDRESS", raising=False)
        import ray

        try:
            ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
            yield ray.get_runtime_context().gcs_address
        finally:
            ray.shutdown()


def same_bits(cases, one: Path, two: Path) -> bool:
    stores = lab.Store(one), lab.Store(two)
    for case in cases:
        first, second = (store.read(case) for store in stores)
        if not first.table.equals(second.table, null_equal=True):
            return False
        if {k: v.tobytes() for k, v in first.arrays.items()} != {
            k: v.tobytes() for k, v in second.arrays.items()
        }:
            return False
    return True


@needs_ray
def test_a_cluster_gives_the_bits_of_one_process(tmp_path, cluster, capsys):
    cases = toy_experiment.recipe("laptop")
    alone = lab.sweep(cases, toy_experiment.compute, tmp_path / "alone", jobs=1)
    capsys.readouterr()
    far = lab.sweep(cases, toy_experiment.compute, tmp_path / "far", backend="ray")
    assert far.table.equals(alone.table)
    assert same_bits(cases, tmp_path / "alone", tmp_path / "far")
    captured = capsys.readouterr()
    assert f"far: {len(cases)}/{len(cases)} cases" in captured.err
    assert captured.out == ""


@needs_ray
def test_a_cluster_records_the_data_that_its_cases_read(tmp_path, cluster, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("own.npz", x=np.ones((3, 2)), y=np.arange(3))

    def compute(case: Point) -> pl.DataFrame:
        from advlab.data import arrays

        return pl.DataFrame({"y": [case.x * float(arrays.load("own.npz").x.sum())]})

    swept = lab.sweep(POINTS[:2], compute, "far", backend="ray")
    assert [maker.data for maker in swept.made_by] == [
        {"file own.npz": {"own.npz": file_checksum(Path("own.npz"))}}
    ]
    np.savez("own.npz", x=np.zeros((3, 2)), y=np.arange(3))
    capsys.readouterr()
    assert set(lab.sweep(POINTS[:2], compute, "far", backend="ray").table["y"]) == {0.0}
    assert "far: made from other data: own.npz changed: 2 runs" in capsys.readouterr().err


@needs_ray
def test_two_workers_on_one_thread_each_that_store_failures(tmp_path, cluster):
    def compute(case: Point) -> pl.DataFrame:
        time.sleep(0.3)
        if case.x == 2.0:
            raise ZeroDivisionError("x is two")
        threads = torch.get_num_threads(), torch.get_num_interop_threads()
        return pl.DataFrame({"pid": [os.getpid()], "intra": [threads[0]], "inter": [threads[1]]})

    swept = lab.sweep(POINTS, compute, tmp_path, backend="ray")
    assert swept.table["x"].to_list() == [0.0, 1.0, 3.0, 4.0, 5.0]
    assert [(f.case["x"], f.reason) for f in swept.failed] == [(2.0, "ZeroDivisionError: x is two")]
    pids = set(swept.table["pid"])
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert set(swept.table["intra"]) == {1}
    assert set(swept.table["inter"]) == {1}
    again = lab.sweep(POINTS, square, tmp_path, backend="ray", jobs=1)
    assert again.failed == []
    assert lab.sweep(POINTS, never, tmp_path, backend="ray", reuse=True).table.equals(again.table)


def kill_first(folder: Path, killed: list[int]) -> None:
    """Kill -9 the first worker that says it is at work."""
    deadline = time.monotonic() + 60
    while not killed and time.monotonic() < deadline:
        for path in folder.iterdir():
            os.kill(int(path.name), signal.SIGKILL)
            killed.append(int(path.name))
            return
        time.sleep(0.01)


@needs_ray
def test_a_killed_worker_is_replaced_and_the_table_is_the_same(tmp_path, cluster):
    at_work, log = tmp_path / "at_work", tmp_path / "log"
    at_work.mkdir()
    killed: list[int] = []
    cases = toy_numpy.recipe("laptop", 4)

    def compute(case: toy_numpy.Case) -> lab.Computed:
        with log.open("a") as file:
            file.write(f"{case.key()}\n")
        (at_work / str(os.getpid())).touch()
        time.sleep(0.5)
        computed = toy_numpy.compute(case)
        (at_work / str(os.getpid())).unlink()
        return computed

    killer = threading.Thread(target=kill_first, args=(at_work, killed))
    killer.start()
    try:
        far = lab.sweep(cases, compute, tmp_path / "far", backend="ray")
    finally:
        killer.join()
    assert killed
    assert far.failed == []
    started = log.read_text().split()
    assert set(started) == {case.key() for case in cases}
    assert len(started) > len(cases)
    alone = lab.sweep(cases, toy_numpy.compute, tmp_path / "alone", jobs=1)
    assert far.table.equals(alone.table)
    assert same_bits(cases, tmp_path / "alone", tmp_path / "far")
    assert not list(tmp_path.rglob(".partial-*"))


@needs_ray
def test_a_case_that_always_kills_its_worker_does_not_take_the_others_along(tmp_path, cluster):
    def compute(case: Point) -> pl.DataFrame:
        if case.x == 0.0:
            os.kill(os.getpid(), signal.SIGKILL)
        return square(case)

    with pytest.raises(AdvlabError, match="1 cases whose workers were killed 4 times"):
        lab.sweep(POINTS, compute, tmp_path, backend="ray")
    assert lab.sweep(POINTS[1:], never, tmp_path, jobs=1, reuse=True).failed == []
    assert lab.sweep(POINTS, square, tmp_path, backend="ray").table["y"].to_list() == [
        x.x**2 for x in POINTS
    ]


@needs_ray
def test_a_worker_that_cannot_store_says_so_in_one_line(tmp_path, cluster):
    folder = tmp_path / "runs"

    def compute(case: Point) -> pl.DataFrame:
        shutil.rmtree(folder)
        folder.write_text("mine")
        return square(case)

    with pytest.raises(AdvlabError, match="another --out") as caught:
        lab.sweep(POINTS[:1], compute, folder, backend="ray")
    assert type(caught.value) is AdvlabError
    assert len(str(caught.value).splitlines()) == 1


@needs_ray
def test_an_address_where_nobody_listens(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, so nobody else has it, but not listened at
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for place in (address, f"ray://{address}", "127.0.0.1:port"):
            with pytest.raises(AdvlabError, match=f"joined at {place}.*ray start --head"):
                lab.sweep(POINTS, square, tmp_path, backend="ray", address=place)


def test_without_ray_the_advice_is_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(AdvlabError, match=r'pip install "advlab\[cluster\]"'):
        lab.sweep(POINTS, square, tmp_path, backend="ray")
    assert len(lab.sweep(POINTS, square, tmp_path, jobs=1).table) == len(POINTS)


def test_an_address_is_only_for_ray(tmp_path):
    with pytest.raises(AdvlabError, match="add --engine ray"):
        lab.sweep(POINTS, square, tmp_path, address="head:6379")


def start(folder: Path, *options: str) -> subprocess.Popen:
    """advlab run, as typed in `folder`, in a process group of its own."""
    command = [sys.executable, "-m", "advlab", "run", toy_numpy.__file__, "--engine", "ray"]
    return subprocess.Popen(
        [*command, *options],
        start_new_session=True,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **ENVIRONMENT},
    )


def kill_a_worker_of(process: subprocess.Popen) -> None:
    """Kill -9 a worker of this process's cluster that is at work on a case."""
    killed = False
    while not killed and process.poll() is None:
        columns = ["ps", "-eo", "pid=,ppid=,args="]
        lines = subprocess.run(columns, capture_output=True, text=True, check=True).stdout
        found = [line.split(maxsplit=2) for line in lines.splitlines()]
        nodes = {pid for pid, parent, *_ in found if parent == str(os.getpid())}
        for pid, parent, *words in found:
            if parent in nodes and words and words[0].startswith("ray::_from_afar"):
                os.kill(int(pid), signal.SIGKILL)
                killed = True
                break
    assert killed


@needs_ray
def test_the_command_joins_a_cluster_and_prints_nothing_but_results(tmp_path, cluster):
    process = start(tmp_path, "--address", cluster, "--seeds", "4", "--out", "here", "--json")
    kill_a_worker_of(process)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    (line,) = out.splitlines()
    assert json.loads(line)["verdicts"][0]["outcome"] == "supported"
    assert "6/6 cases" in errors
    cases = toy_numpy.recipe("laptop", 4)
    lab.sweep(cases, toy_numpy.compute, tmp_path / "alone", jobs=1)
    assert same_bits(cases, tmp_path / "alone", next((tmp_path / "here").glob("toy_numpy-*")))


@needs_ray
def test_a_node_without_the_folder_is_told_to_share_it(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(os, "getcwd", lambda: str(tmp_path / "elsewhere"))
    with pytest.raises(AdvlabError, match=r"all nodes share, with .*elsewhere") as caught:
        lab.sweep(POINTS[:1], square, tmp_path, backend="ray")
    assert len(str(caught.value).splitlines()) == 1


def members(session: int) -> list[str]:
    """The processes of a session that have not ended."""
    columns = ["ps", "-eo", "sess=,stat=,args="]
    lines = subprocess.run(columns, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split(maxsplit=2) for line in lines]
    return [line[-1] for line in found if line[0] == str(session) and not line[1].startswith("Z")]


@needs_ray
@pytest.mark.nightly  # on a busy machine the sweep may be over before the signal comes
def test_ctrl_c_stops_the_workers_and_the_next_sweep_goes_on(tmp_path):
    cases = toy_numpy.recipe("laptop")
    folder = tmp_path / "runs" / name(toy_numpy.__file__)
    process = start(tmp_path, "--jobs", "2")
    try:
        while sum((folder / c.key()).exists() for c in cases) < 2 and process.poll() is None:
            time.sleep(0.01)
        assert any("raylet" in line for line in members(process.pid))
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "run it again to go on" in errors
    assert "Traceback" not in errors
    assert not list(tmp_path.rglob(".partial-*"))
    assert sum((folder / case.key()).exists() for case in cases) < len(cases)
    deadline = time.monotonic() + 20
    while members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert members(process.pid) == []
    assert lab.sweep(cases, toy_numpy.compute, folder, jobs=1).failed == []
