"""Numbers of the papers, beside ours."""

import pytest
from sample_results import convergence, quick

from advlab.core.errors import AdvlabError
from advlab.report.page import render
from advlab.report.printed import Printed, PrintedTable, Prints, load


def test_what_a_paper_prints_stands_beside_what_was_measured():
    found = convergence()
    prints = Prints(
        numbers={
            "generalization/fig5/4": Printed(printed="0.2 at eps = 3", where="Table 9", value=0.005)
        },
        tables={
            "generalization/fig5": PrintedTable(
                where="Table 9", columns=("eps", "risk"), rows=(("0.1", "1.6 (0.2)"),)
            )
        },
    )
    text = render([found, quick()], {}, None, prints)
    card = text[text.index('id="generalization/fig5/4"') :].partition("</details>")[0]
    assert "0.2 at <i>ε</i> = 3 (Table 9)" in card
    assert "the paper prints 0.005" in card
    assert 'class="printed"' in card
    assert "1 number that the paper prints, beside ours" in text
    assert "<td>1.6 (0.2)</td>" in text


def test_a_table_with_a_short_row_is_refused(tmp_path):
    path = tmp_path / "printed.toml"
    path.write_text('["a/b"]\nwhere = "Table 1"\ncolumns = ["a", "b"]\nrows = [["1"]]\n')
    with pytest.raises(AdvlabError, match="Table 1 must have 2 cells"):
        load(path)
