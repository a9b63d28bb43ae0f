"""`advlab data` as a user calls it."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from advlab.cli.data import data as app
from advlab.core.errors import AdvlabError
from advlab.data.published import SETS


def run(*words):
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


def test_help_has_examples_and_does_not_import_torch():
    code = (
        "import sys; from typer.testing import CliRunner; from advlab.cli.data import data as app\n"
        "for words in (['--help'], ['fetch', '--help'], ['path', '--help']):\n"
        "    result = CliRunner().invoke(app, words); assert result.exit_code == 0\n"
        "    print(result.output)\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "advlab data fetch mnist" in done.stdout
    assert "--mirror" in done.stdout


def test_path_says_where_why_and_what(small_mnist, monkeypatch):
    monkeypatch.setenv("ADVLAB_DATA", str(small_mnist))
    text = run("path").stdout
    assert text.splitlines()[0] == str(small_mnist)
    assert "ADVLAB_DATA names it" in text
    assert "mnist: t10k-images-idx3-ubyte.gz" in text
    assert "cifar10: not there; run `advlab data fetch cifar10`" in text


def test_path_as_json(small_mnist, tmp_path):
    told = json.loads(run("path", "--data", str(small_mnist), "--json").stdout)
    assert told["directory"] == str(small_mnist)
    assert len(told["sets"]["mnist"]) == 4
    assert told["sets"]["cifar10"] == []
    told = json.loads(run("path", "--data", str(tmp_path / "none"), "--json").stdout)
    assert set(told["sets"]) == set(SETS)


def test_fetch_prints_the_folder_when_the_set_is_there(real_data, tmp_path):
    (tmp_path / "mnist").mkdir()
    for file in (real_data / "mnist").iterdir():
        (tmp_path / "mnist" / file.name).symlink_to(file)
    done = run("fetch", "mnist", "--data", str(tmp_path), "--mirror", "http://127.0.0.1:9")
    assert done.stdout.strip() == str(tmp_path / "mnist")
    assert "LeCun" in done.stderr
    told = json.loads(run("fetch", "mnist", "--data", str(tmp_path), "--json").stdout)
    assert told["name"] == "mnist"
    assert len(told["files"]) == 4


def test_mistakes_reach_the_caller_as_one_line(tmp_path):
    with pytest.raises(AdvlabError, match="a data set among mnist, cifar10"):
        run("fetch", "imagenet", "--data", str(tmp_path))
    with pytest.raises(AdvlabError, match="to do it by hand"):
        run("fetch", "mnist", "--data", str(tmp_path), "--mirror", "http://127.0.0.1:9")
