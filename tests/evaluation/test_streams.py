"""Streams are read once, batch by batch, and nothing of a batch stays."""

import gc
import weakref
from itertools import pairwise

import forms
import pytest
import torch
from forms import X

import advlab
from advlab.attacks import PGD, Identity
from advlab.core.errors import AdvlabError
from advlab.evaluation import memory
from advlab.evaluation.examples import regrouped
from advlab.evaluation.kept_rows import EvenSample
from advlab.threats import Ball

BALL = Ball("linf", 0.05)
QUICK = {"ball": BALL, "attack": PGD(steps=2), "certificates": (), "checks": False}


class Batches:
    """Made when asked for; counts how many are alive at once."""

    def __init__(self, count: int, size: int = 32):
        self.count, self.size, self.alive, self.most = count, size, 0, 0

    def __iter__(self):
        for number in range(self.count):
            rng = torch.Generator().manual_seed(number)
            x = torch.rand(self.size, forms.D, generator=rng)
            self.alive += 1
            self.most = max(self.most, self.alive)
            weakref.finalize(x, self._gone)
            yield {"x": x, "y": forms.labels_of(x)}
            del x

    def _gone(self) -> None:
        self.alive -= 1


@pytest.mark.parametrize("size", [32, 50])
def test_batches_of_a_stream_do_not_stay_in_memory(size):
    few, many = Batches(12), Batches(60)
    for data in (few, many):
        found = advlab.evaluate(forms.Net(), data, batch=size, **QUICK)
        gc.collect()
        assert found.n == 32 * data.count
        assert len(found.broken_by) == found.n
        assert len(found.examples) == 8
        assert data.alive == 0
    assert many.most <= few.most <= 10


def test_points_of_a_stream_are_kept_when_asked_for():
    data = Batches(3)
    found = advlab.evaluate(forms.Net(), data, batch=20, points=True, **QUICK)
    x = torch.cat([one["x"] for one in Batches(3)])
    y = torch.cat([one["y"] for one in Batches(3)])
    same = advlab.evaluate(forms.Net(), x, y, batch=20, points=True, **QUICK)
    assert torch.equal(found.adversarial.x, same.adversarial.x)
    assert torch.equal(found.adversarial.broken, same.adversarial.broken)


def test_a_stream_that_was_stopped_goes_on_and_other_data_are_named(tmp_path, monkeypatch, capsys):
    settings = {**QUICK, "batch": 32, "store": tmp_path}
    whole = advlab.evaluate(forms.Net(), Batches(6), **{**settings, "store": None})

    def stopped():
        yield from list(Batches(6))[:3]
        raise KeyboardInterrupt

    # The first 256 rows are looked at before the work begins.
    monkeypatch.setattr("advlab.evaluation.validate.PEEK", 32)
    with pytest.raises(KeyboardInterrupt):
        advlab.evaluate(forms.Net(), stopped(), **settings)
    assert len(list(tmp_path.glob("batch-*"))) == 3
    again = advlab.evaluate(forms.Net(), Batches(6), **settings)
    assert again.broken_by == whole.broken_by
    assert len(list(tmp_path.glob("batch-*"))) == 6

    mixed = [one for n in (0, 2, 1, 3, 4, 5) for one in [list(Batches(6))[n]]]
    with pytest.raises(AdvlabError, match=r"other data: .* row 32 differs.*shuffle=False"):
        advlab.evaluate(forms.Net(), mixed, **settings)
    kept = advlab.evaluate(forms.Net(), mixed, reuse=True, **settings)
    assert kept.broken_by == whole.broken_by
    assert "as reuse asks" in capsys.readouterr().err


def test_checks_of_a_stream_break_rows_of_the_data():
    """A model without gradients: only the check by queries breaks rows, and names them right."""
    net = forms.Net()

    class NoGradient(torch.nn.Module):
        def forward(self, x):
            return net(x).detach() + 0 * x.sum()

    data = Batches(10)
    settings = {"ball": Ball("linf", 0.2), "attack": "fast", "certificates": (), "batch": 64}
    found = advlab.evaluate(NoGradient(), data, **settings)
    x = torch.cat([one["x"] for one in Batches(10)])
    y = torch.cat([one["y"] for one in Batches(10)])
    assert "Square (check)" in found.broken_by
    assert any(warning.kind == "zero_gradient" for warning in found.check_warnings)
    assert found.examples
    for one in found.examples:
        assert torch.equal(one.original, x[one.row])
        assert one.label == int(y[one.row])
        assert found.broken_by[one.row] != ""
        assert settings["ball"].contains(one.perturbed[None], x[one.row][None]).all()
        assert int(net(one.perturbed[None]).argmax()) == one.wrong_answer != one.label


def test_the_size_of_batches_knows_how_many_rows_there_are():
    net = forms.Net()
    sizes = [memory.batch_size(net, X, rows=rows) for rows in (10, 3000, float("inf"))]
    assert sizes == [10, 750, 1024]


@pytest.mark.parametrize("size", [1, 5, 7, 100])
def test_regrouped_batches_hold_the_same_rows_in_order(size):
    parts = [(X[a:b], torch.arange(a, b)) for a, b in [(0, 3), (3, 4), (4, 17), (17, 40)]]
    found = list(regrouped(parts, size))
    assert torch.equal(torch.cat([x for x, _ in found]), X)
    assert torch.cat([y for _, y in found]).tolist() == list(range(40))
    assert {len(x) for x, _ in found[:-1]} <= {size}


@pytest.mark.parametrize("count", [1, 63, 64, 128, 129, 1000, 4097])
def test_an_even_sample_is_spread_over_all_rows(count):
    sample = EvenSample(64)
    for row in range(count):
        sample.offer(row, torch.tensor(row), torch.tensor(0))
    rows = list(sample.rows)
    assert min(64, count) <= len(rows) <= 128
    steps = {b - a for a, b in pairwise(rows)}
    assert len(steps) <= 1
    assert rows[0] == 0
    assert count - rows[-1] <= sample.stride


def test_progress_of_a_stream_of_unknown_length(capsys):
    found = advlab.evaluate(
        forms.Net(), iter(Batches(2)), **{**QUICK, "attack": Identity()}, progress=True
    )
    assert found.n == 64
