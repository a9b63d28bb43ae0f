"""The figures of all experiments: their numbers, and the size of the page that holds them."""

from pathlib import Path

import pytest
from every_chart import every_page, every_result

from advlab.papers import EXPERIMENTS
from advlab.report import figure

LARGEST = 8_000_000


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    return every_page(tmp_path_factory.mktemp("report"))


@pytest.mark.timeout(900)
def test_every_chart_has_a_table_of_its_numbers():
    for result in every_result():
        numbers = figure.table(result.chart)
        assert numbers.height >= 2, result.experiment
        told = [name for name in numbers.columns if name != "panel"]
        assert len(told) >= 2, result.experiment
        # Of pictures alone there would be labels, and no numbers.
        cells = numbers.select(told).to_numpy().ravel()
        assert any(is_number(cell) for cell in cells), result.experiment


def is_number(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


@pytest.mark.timeout(900)
def test_a_page_of_all_experiments_has_every_figure_and_is_below_8_mb(written):
    text = written.read_text()
    assert text.count("<figure ") == len(EXPERIMENTS)
    assert "there is no figure here" not in text
    assert written.stat().st_size < LARGEST
