"""One progress bar: lines in a file, a bar in a terminal, an estimate in both."""

import io
import math

import pytest
from rich.console import Console

from advlab.core import progress as module
from advlab.core.progress import Progress, duration, remaining
from advlab.evaluation.progress import EvaluationProgress


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_line_now_and_then_with_the_time_left(clock, capsys):
    with Progress(8, "start") as progress:
        for done in range(1, 5):
            clock.now += 6.0
            progress.update(done, f"{done} of 8")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "2 of 8 in 12 s, about 36 s left",
        "4 of 8 in 24 s, about 24 s left",
    ]


def test_what_an_earlier_run_did_does_not_count_as_speed(clock, capsys):
    with Progress(100, done=90) as progress:
        clock.now += 20.0
        progress.update(95, "step 95")
    assert "about 20 s left" in capsys.readouterr().err


def test_the_text_is_asked_for_only_when_it_is_due(clock):
    asked = []
    with Progress(1000) as progress:
        for done in range(500):
            clock.now += 0.01
            progress.update(done, lambda: asked.append(1) or "text")
    assert 10 < len(asked) < 30


def test_nothing_is_shown_if_not_wanted(clock, capsys):
    with Progress(2, show=False) as progress:
        clock.now += 50
        progress.update(1, "half")
        progress.say("a word")
        progress.finish()
    assert capsys.readouterr() == ("", "")


def test_a_bar_in_a_terminal(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(module, "Console", lambda **_: terminal)
    with Progress(4, "cases") as progress:
        progress.update(2, "2 of 4 cases")
        progress.say("a line above")
    shown = screen.getvalue()
    assert "2 of 4 cases" in shown
    assert "a line above" in shown
    assert "left" in shown


def test_an_evaluation_counts_examples_and_passes(clock, capsys):
    with EvaluationProgress(40) as shown:
        shown.rows_done(10)
        for _ in range(3):
            clock.now += 6
            shown.model_pass("APGD")
    assert capsys.readouterr().err == "APGD: 10/40 examples, 2 passes in 12 s, about 36 s left\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.234, "0.23 s"), (7.4, "7 s"), (99, "99 s"), (600, "10 min"), (9000, "2.5 h")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_the_time_that_remains():
    assert remaining(elapsed=10.0, done=2.0, total=8.0) == 30.0
    assert remaining(elapsed=10.0, done=0.0, total=8.0) == math.inf
