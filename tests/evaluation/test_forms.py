"""Every form of data with every form of model: the same examples give the same answer."""

from functools import cache

import forms
import pytest
import torch
from forms import DATA, MODELS, X

import advlab
from advlab.attacks import PGD
from advlab.core.errors import AdvlabError
from advlab.threats import Ball

BALL = Ball("linf", 0.05)
Y = forms.labels_of(X)
Y[::9] = (Y[::9] + 1) % 3


def judged(model, data, **more):
    x, *y = data
    settings = {"ball": BALL, "attack": PGD(steps=3), "certificates": (), "checks": False}
    return advlab.evaluate(model, x, *y, **{**settings, "batch": 16, **more})


@cache
def expected():
    return judged(forms.Net(), (X, Y))


@pytest.mark.parametrize("form", MODELS)
@pytest.mark.parametrize("data", ["tensors", "DataLoader", "dicts of batches"])
def test_any_model_with_any_data(form, data):
    given = DATA[data](X, Y)
    if form == "labels in words":
        given = (X, ["abc"[label] for label in Y.tolist()])
    found = judged(MODELS[form](), given)
    assert found.n == 40
    assert found.clean_error == pytest.approx(5 / 40)
    assert found.robust_error >= found.clean_error
    if form in ("tuple", "dict", "object", "function of scores"):
        assert found.broken_by == expected().broken_by


@pytest.mark.parametrize("form", DATA)
def test_any_data_gives_the_numbers_of_tensors(form):
    found = judged(forms.Net(), DATA[form](X, Y))
    assert found.broken_by == expected().broken_by
    assert found.intervals == expected().intervals
    assert [one.row for one in found.examples] == [one.row for one in expected().examples]
    for one, other in zip(found.examples, expected().examples, strict=True):
        assert torch.equal(one.original, other.original)
        assert torch.equal(one.perturbed, other.perturbed)
        assert one.label == other.label
    assert 0 < found.robust_error - found.clean_error < 0.8


@pytest.mark.parametrize("form", DATA)
def test_attack_takes_any_data(form):
    x, *y = DATA[form](X, Y)
    settings = {"eps": 0.05, "batch": 16, "quiet": True, "attack": PGD(steps=2)}
    assert torch.equal(
        advlab.attack(forms.Net(), x, *y, **settings).x,
        advlab.attack(forms.Net(), X, Y, **settings).x,
    )


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (3, "data as a Dataset, a DataLoader"),
        ("nowhere", "neither such a folder nor such a file"),
        ([], "real numbers in y"),
        (iter(()), "at least one example"),
        ([{"picture": X, "label": Y}], "a batch with inputs .*a dict with picture, label"),
        ([(X, Y[:3])], "x of shape"),
        ([(X[:4], Y[:4]), (X[:4, :2], Y[:4])], r"one shape in all batches; got \(4,\) and \(2,\)"),
        (iter([X]), "labels|pair or a dict"),
        ([(X, torch.full((40,), 3))], r"labels must be 0 \.\. 2"),
        ([(X, Y)] * 9 + [(X, Y + 1)], r"labels must be 0 \.\. 2"),
        ([(X, Y)] * 9 + [(X / 0, Y)], "finite"),
    ],
)
def test_what_is_no_data_is_refused_in_one_line(data, says):
    with pytest.raises(AdvlabError, match=says) as refused:
        judged(forms.Net(), (data,))
    assert "\n" not in str(refused.value)


def test_y_beside_data_that_bring_their_own_is_refused():
    with pytest.raises(AdvlabError, match="y left out"):
        judged(forms.Net(), (forms.Pairs(X, Y), Y))
