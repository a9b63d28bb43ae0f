"""The house: rooms import only from earlier rooms, and every registered experiment is complete."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import advlab
from advlab.lab import About
from advlab.papers import EXPERIMENTS

ROOT = Path(advlab.__file__).parent
ROOMS = [
    "core",
    "threats",
    "losses",
    "data",
    "models",
    "attacks",
    "certify",
    "evaluation",
    "training",
    "measure",
    "theory",
    "linear",
    "reductions",
    "report",
    "lab",
    "papers",
    "diagnose",
    "cli",
]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
INNER = [file for file in FILES if file not in ("__init__.py", "__main__.py")]


def room(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


def imported_modules(file: str) -> Iterator[str]:
    """Every module a file imports, anywhere in it, by its full name."""
    package = ["advlab", *file.split("/")[:-1]]
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield stem
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def imported_rooms(file: str) -> set[str]:
    names = (name.split(".") for name in imported_modules(file))
    return {name[1] for name in names if name[0] == "advlab" and len(name) > 1} & set(ROOMS)


def test_the_import_reader_reads():
    assert {"core"} <= imported_rooms("lab/case.py")
    assert {"lab", "papers", "report"} <= imported_rooms("cli/run.py")


@pytest.mark.parametrize("file", INNER)
def test_every_file_is_in_a_room_and_imports_only_from_earlier_rooms(file):
    here = ROOMS.index(room(file))
    later = [other for other in imported_rooms(file) if ROOMS.index(other) > here]
    assert later == []


@pytest.mark.parametrize("file", [file for file in INNER if room(file) in ("report", "theory")])
def test_report_and_theory_never_import_torch(file):
    assert not [name for name in imported_modules(file) if name.split(".")[0] == "torch"]


@pytest.mark.parametrize("file", FILES)
def test_no_assert_no_bare_except_no_pickle(file):
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        assert not isinstance(node, ast.Assert), f"assert in line {node.lineno}"
        assert not (isinstance(node, ast.ExceptHandler) and node.type is None), node.lineno
    assert not {"pickle", "cloudpickle", "torch.load"} & set(imported_modules(file))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_complete(name):
    assert EXPERIMENTS[name] == "advlab.papers." + name.replace("/", ".experiments.")
    module = importlib.import_module(EXPERIMENTS[name])
    assert module.__doc__
    assert isinstance(module.ABOUT, About)
    assert {"smoke", "laptop"} <= set(module.ABOUT.seconds)
    for function in ("recipe", "compute", "figure", "verdicts"):
        assert callable(getattr(module, function))
    for scale in module.ABOUT.seconds:
        keys = [case.key() for case in module.recipe(scale)]
        assert len(set(keys)) == len(keys) > 0
