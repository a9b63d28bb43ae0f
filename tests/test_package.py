"""What a package needs besides code: types, metadata, pins that fit, files that tools can read."""

import os
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import advlab

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_types_are_shipped_and_the_version_is_one():
    assert (Path(advlab.__file__).parent / "py.typed").is_file()
    assert PROJECT["version"] == advlab.__version__
    assert PROJECT["authors"] == [{"name": "advlab contributors"}]


def test_the_pinned_torch_is_one_that_the_package_allows():
    needed = {Requirement(text).name: Requirement(text) for text in PROJECT["dependencies"]}
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    )
    assert needed["torch"].specifier.contains(pins["torch"])
    for version in ("2.4.0", "2.9.1"):
        assert needed["torch"].specifier.contains(version)
    names = {name.lower().replace("_", "-") for name in pins}
    assert {name.lower() for name in needed} <= names


def test_the_workflow_runs_the_script_and_the_hooks_need_no_other_host():
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    steps = workflow["jobs"]["test"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert {repository["repo"] for repository in hooks} == {"local"}
