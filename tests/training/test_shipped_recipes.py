"""The recipe files of the docs are recipes, and set what small networks need."""

from pathlib import Path

import pytest

from advlab.threats import Ball
from advlab.training.recipes import recipe

FILES = sorted((Path(__file__).parents[2] / "docs" / "recipes").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_they_are_read_and_the_radius_grows(file):
    which = recipe(file)
    (stage,) = which.stages(Ball("linf", 0.3, box=(0, 1)), steps_per_epoch=10)
    _, first = stage.objective.adversary(0)
    _, later = stage.objective.adversary(10 * 3)
    assert first.radius < 0.02
    assert later.radius == 0.3
    assert stage.schedule.at(0, 100) < which.lr / 2


def test_there_are_some():
    assert {file.stem for file in FILES} >= {"mnist-linf-0.1", "mnist-linf-0.3"}
