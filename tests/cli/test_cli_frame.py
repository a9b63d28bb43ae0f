"""The command's frame: help, versions, mistakes in one line, and names."""

import tomllib
from pathlib import Path

import pytest

import advlab
from advlab.cli import VERBS, main
from advlab.core.errors import AdvlabError
from advlab.papers import EXPERIMENTS, select


def called(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return stop.value.code or 0


def test_version(capsys):
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    assert called("--version") == 0
    assert capsys.readouterr().out == f"advlab {project['project']['version']}\n"
    assert advlab.__version__ == project["project"]["version"]


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_help_names_every_verb(capsys, arguments):
    assert called(*arguments) == 0
    text = capsys.readouterr().out
    for verb, (_, help) in VERBS.items():
        assert verb in text
        assert help in text


@pytest.mark.parametrize("command", ["list", "run", "report", "verify", "data path", "data fetch"])
def test_every_command_has_examples(capsys, command):
    assert command.split()[0] in VERBS
    assert called(*command.split(), "--help") == 0
    usage, _, rest = capsys.readouterr().out.partition("Examples:")
    assert f"advlab {command}" in usage
    assert f"advlab {command}" in rest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rnu",), "Did you mean 'run'"),
        (("run", "--nope", "x"), "--nope"),
        (("run",), "Missing argument"),
        (("run", "generalization/fig5", "--scale", "huge"), "huge"),
        (("run", "generalization/fig5", "--seeds", "0"), "--seeds"),
        (("run", "generalization/fig5", "--jobs", "x"), "--jobs"),
        (("run", "generalization/fgi5"), "did you mean generalization/fig5"),
        (("run", "fig5"), "did you mean benign/fig5 or generalization/fig5"),
        (("run", "nothing/*"), "nothing/*"),
        (("run", "no_such_file.py"), "does not exist"),
        (("list", "generalisation"), "generalisation"),
    ],
)
def test_a_mistake_is_one_line(capsys, arguments, message):
    assert called(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_select():
    of_one_paper = [name for name in EXPERIMENTS if name.startswith("generalization/")]
    assert 0 < len(of_one_paper) < len(EXPERIMENTS)
    assert select("generalization/*") == of_one_paper
    assert select("generalization") == of_one_paper
    assert select("generalization/") == of_one_paper
    assert select("*") == list(EXPERIMENTS)
    assert select("generalization/fig1") == ["generalization/fig1"]
    of_two = [f"generalization/fig1{n}" for n in range(7)]
    assert select("*/fig1?") == of_two + [f"purification/fig1{n}" for n in range(4)]
    lasso_first = ["generalization/lasso", "benign/lemmas"]
    assert select("generalization/lasso", "*/l*")[:2] == lasso_first
    assert select("generalization/lasso", "*/l*").count("generalization/lasso") == 1
    assert select("my.module", "a/b.py", "m:o") == ["my.module", "a/b.py", "m:o"]
    with pytest.raises(AdvlabError, match="generalization/closed_forms"):
        select("generalization/closed_form")
