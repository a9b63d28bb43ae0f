"""The examples of docstrings run as they stand: they import what they use of advlab.

The few that do not run are named with what they would need (`helpers/example_setups.py`).
"""

import pytest
from doc_examples import examples, run
from example_setups import FRAGMENTS, SETUPS, SHORTER

FOUND = {str(example): example for example in examples()}


@pytest.mark.parametrize("name", [name for name in FOUND if name not in FRAGMENTS])
def test_an_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(FOUND[name], monkeypatch=monkeypatch)


def test_nearly_all_examples_run_and_no_setup_is_left_over():
    assert len(FOUND) > 220
    assert len(FRAGMENTS) <= 12
    files = {example.file for example in FOUND.values()}
    assert {*SETUPS} <= {*FOUND} | files
    assert {*SHORTER, *FRAGMENTS} <= {*FOUND}


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("Ball('l2', 0.1)", NameError),
        ("from advlab.threats import Bal", ImportError),
        ("from advlab.threats import Ball\nBall('l2', radios=0.1)", Exception),
        (">>> 1 + 1\n3", AssertionError),
    ],
)
def test_a_broken_example_is_found(code, error):
    from doc_examples import Example

    with pytest.raises(error):
        run(Example("threats/ball.py", "Ball", code))
    run(Example("threats/ball.py", "Ball", ">>> 1 + 1\n2"))
