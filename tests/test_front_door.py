"""The front door: each kind of odd input works, or is refused in one line that says why."""

import copy
import re
import shlex

import front_door
import front_door_cli
import front_door_settings
import pytest
import sample_results
import torch
from front_door import WORKS, Row

from advlab.cli import main
from advlab.core.errors import AdvlabError

ROWS, COMMANDS = front_door.rows(), front_door_cli.rows()


def name(row: Row) -> str:
    return f"{row.verb}-{row.argument}: {row.kind}"


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_each_kind_of_input_works_or_is_refused_in_one_line(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = row.value
    if isinstance(value, torch.nn.Module) and "inference" not in row.kind:
        value = copy.deepcopy(value)
    if row.says is WORKS:
        assert front_door.call(row.verb, **{row.argument: value}) is not None
        return
    with pytest.raises(AdvlabError, match=row.says) as refused:
        front_door.call(row.verb, **{row.argument: value})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", front_door_settings.SETTINGS)
def test_each_setting_works_or_is_refused_in_one_line(kind):
    make, says = front_door_settings.SETTINGS[kind]
    if says is WORKS:
        make()
        return
    with pytest.raises(AdvlabError, match=says) as refused:
        make()
    assert "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("door")
    front_door_cli.prepare(path)
    (path / "runs").mkdir()
    (path / "runs" / "result-smoke.json").write_text(sample_results.results()[0].model_dump_json())
    return path


@pytest.mark.parametrize("kind", COMMANDS)
def test_each_command_line_works_or_is_one_line_on_stderr(kind, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    line, says = COMMANDS[kind]
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    if says is WORKS:
        assert not stop.value.code, captured.err
        return
    told = [one for one in captured.err.splitlines() if not one.startswith(("note:", "skipped:"))]
    assert stop.value.code == 2
    assert len(told) == 1
    assert told[0].startswith("error: ")
    assert re.search(says, told[0]), told[0]


def test_the_table_is_long():
    assert len(ROWS) + len(front_door_settings.SETTINGS) + len(COMMANDS) >= 500
