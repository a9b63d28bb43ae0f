"""What outputs mean: one sigmoid, labels under any names, many labels, numbers, half precision."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

import advlab
from advlab.attacks import FAB, PGD
from advlab.core.errors import AdvlabError
from advlab.evaluation import Output
from advlab.losses import absolute, cross_entropy, dlr, margin, squared
from advlab.threats import Ball

N, D = 30, 3
X = torch.rand(N, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
CORNERS = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=D)), dtype=torch.float64)
RADIUS = 0.1
BALL = Ball("linf", RADIUS)


def affine(outputs: int) -> nn.Linear:
    torch.manual_seed(2)
    net = nn.Linear(D, outputs).double()
    with torch.no_grad():
        net.weight.mul_(3)
        net.bias.copy_(-net(X).mean(0) + net.bias)
    return net


def corners(net) -> torch.Tensor:
    """Outputs at all corners of the linf ball, (corners, n, outputs): an affine map's worst."""
    with torch.no_grad():
        return torch.stack([net(X + RADIUS * corner) for corner in CORNERS])


ONE = affine(1)
SIGNS = torch.where(ONE(X)[:, 0].detach() > 0, 1, -1)
SIGNS[:3] *= -1
TRUTH = float(((SIGNS * corners(ONE)[..., 0]) <= 0).any(0).double().mean())
NAMES = {
    "-1 and +1": SIGNS,
    "0 and 1": (SIGNS + 1) // 2,
    "real 0 and 1": (SIGNS.double() + 1) / 2,
    "booleans": SIGNS > 0,
    "a column": ((SIGNS + 1) // 2)[:, None],
    "1 and 2": (SIGNS + 3) // 2,
    "words": np.where(SIGNS > 0, "dog", "cat"),
    "a list of words": ["dog" if sign > 0 else "cat" for sign in SIGNS],
}
HEADS = {
    "logit": ONE,
    "flat logit": nn.Sequential(ONE, nn.Flatten(0)),
    "sigmoid": nn.Sequential(ONE, nn.Sigmoid()),
    "flat sigmoid": lambda x: torch.sigmoid(ONE(x))[:, 0],
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("names", NAMES)
def test_one_output_is_judged_where_its_answer_changes(head, names):
    """A sigmoid at 0.5, a logit at 0: the same errors, and the truth by all corners."""
    found = advlab.evaluate(HEADS[head], X, NAMES[names], BALL, "fast", checks=False)
    assert found.clean_error == pytest.approx(3 / N)
    assert found.robust_error == pytest.approx(TRUTH)
    assert ("probability" in found.reading) == ("sigmoid" in head)
    assert ("0 and 1" in found.reading) == (head[-5:] == "logit" and names in list(NAMES)[1:5])
    assert ("'cat' is class 0, 'dog' is class 1" in found.reading) == ("words" in names)
    assert "read as: " in str(found) or found.reading == ""


def test_what_cannot_be_told_must_be_said():
    """A linear model of 0 and 1 is judged at 0.5, but nothing keeps it in [0, 1]."""
    linear = lambda x: 0.5 + 0.01 * ONE(x)  # noqa: E731
    with pytest.raises(AdvlabError, match="say output='logit' or output='probability'"):
        advlab.evaluate(linear, X, SIGNS, BALL, "fast")
    found = advlab.evaluate(linear, X, SIGNS, BALL, "fast", checks=False, output="probability")
    assert found.robust_error == pytest.approx(TRUTH)
    at_zero = advlab.evaluate(linear, X, SIGNS, BALL, "fast", checks=False, output="logit")
    assert at_zero.clean_error == pytest.approx(float((SIGNS < 0).double().mean()))


def test_a_model_that_cannot_be_asked_far_from_the_data_must_be_told_about():
    def narrow(x):
        if bool((x.abs() > 10).any()):
            raise ValueError("out of range")
        return torch.sigmoid(ONE(x))

    with pytest.raises(AdvlabError, match="say output='logit'"):
        advlab.evaluate(narrow, X, SIGNS, BALL, "fast")
    found = advlab.evaluate(narrow, X, SIGNS, BALL, "fast", checks=False, output="probability")
    assert found.clean_error == pytest.approx(3 / N)


def test_logits_that_happen_to_be_small_and_positive_are_logits():
    few = (ONE(X)[:, 0] > 0) & (ONE(X)[:, 0] < 1)
    found = advlab.evaluate(ONE, X[few], torch.ones(int(few.sum())), BALL, "fast", checks=False)
    assert "probability" not in found.reading
    assert found.clean_error == 0


TWO = affine(2)
TWO_LABELS = TWO(X).argmax(1)


@pytest.mark.parametrize(
    "names",
    [
        TWO_LABELS * 2 - 1,
        TWO_LABELS + 1,
        TWO_LABELS * 4 + 3,
        np.array(["no", "yes"])[TWO_LABELS.numpy()],
        np.array(["no", "yes"], dtype=object)[TWO_LABELS.numpy()],
    ],
)
def test_two_classes_under_any_names(names):
    found = advlab.evaluate(TWO, X, names, BALL, "fast", checks=False)
    assert found.clean_error == 0
    assert "is class 0" in found.reading
    assert found.broken_by == advlab.evaluate(TWO, X, TWO_LABELS, BALL, "fast").broken_by


def test_classes_that_are_named():
    words = np.array(["b", "a"])[TWO_LABELS.numpy()]
    output = Output("scores", classes=("b", "a"))
    assert advlab.evaluate(TWO, X, words, BALL, "fast", output=output).clean_error == 0
    assert advlab.evaluate(TWO, X, words, BALL, "fast").clean_error == 1  # a comes before b
    parts = [(X[k : k + 5], list(words[k : k + 5])) for k in range(0, N, 5)]
    assert advlab.evaluate(TWO, parts, ball=BALL, attack="fast", output=output).clean_error == 0


MANY = affine(4)
TAGS = (MANY(X) > 0).long()
TAGS[:4, 1] = 1 - TAGS[:4, 1]


@pytest.mark.parametrize("radius", [0.02, RADIUS])
def test_many_labels_are_wrong_if_one_is(radius):
    signs = 2 * TAGS - 1
    worst = torch.stack([MANY(X + radius * corner) for corner in CORNERS]) * signs
    truth = (worst <= 0).any(2).any(0).double().mean()
    ball = Ball("linf", radius)
    found = advlab.evaluate(MANY, X, TAGS, ball, checks=False)
    assert found.clean_error == pytest.approx(4 / N)
    assert found.robust_error == found.certified_error == pytest.approx(float(truth))
    assert 0.3 < found.robust_error < 1
    smooth = nn.Sequential(MANY, nn.Sigmoid())
    again = advlab.evaluate(smooth, X, TAGS.bool(), ball, "fast", checks=False)
    assert float(truth) - 0.1 <= again.robust_error <= float(truth)
    assert "probabilities, judged at 0.5" in again.reading
    one = found.examples[0]
    assert one.label == tuple(TAGS[one.row].tolist())
    assert one.answer == one.label != one.wrong_answer


def test_one_hot_labels_are_not_taken_for_many():
    with pytest.raises(AdvlabError, match=r"y.argmax\(1\) of one-hot labels, or output='multi"):
        advlab.evaluate(MANY, X, torch.eye(4)[TAGS.argmax(1)], BALL)


def test_losses_of_many_labels_by_their_definitions():
    outputs, y = MANY(X).detach(), 2 * TAGS - 1
    assert torch.equal(margin(outputs, y), torch.stack([-y * outputs]).amax(2)[0])
    assert torch.equal(dlr(outputs, y), margin(outputs, y))
    each = nn.functional.binary_cross_entropy_with_logits(
        outputs, TAGS.double(), reduction="none"
    ).sum(1)
    torch.testing.assert_close(cross_entropy(outputs, y), each)
    torch.testing.assert_close(squared(outputs, outputs + 2.0), torch.full((N,), 16.0).double())
    torch.testing.assert_close(absolute(outputs, outputs + 2.0), torch.full((N,), 8.0).double())


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_regression_is_bracketed_by_its_worst_corner(loss, columns):
    net, power = affine(columns), 2 if loss == "squared" else 1
    y = net(X).detach() + 0.2 * torch.randn(N, columns, generator=torch.Generator().manual_seed(3))
    each = (corners(net) - y).abs() ** power
    truth = each.sum(2).amax(0).mean()
    found = advlab.evaluate(
        net, X, y, BALL, "fast", output=Output("regression", loss=loss), points=True
    )
    assert found.clean_error is found.robust_error is found.certified_error is None
    clean = ((net(X).detach() - y).abs() ** power).sum(1).mean()
    assert found.clean_loss == pytest.approx(float(clean), rel=1e-6)
    assert found.robust_loss <= float(truth) * (1 + 1e-6)
    assert found.robust_loss == pytest.approx(float(truth), rel=0.02)
    assert found.certified_loss >= float(truth) * (1 - 1e-6)
    if columns == 1:
        assert found.robust_loss == pytest.approx(float(truth), rel=1e-5)
        assert found.certified_loss == pytest.approx(float(truth), rel=1e-3)
    low, high = found.intervals["robust_loss"]
    assert low < found.robust_loss < high
    assert BALL.contains(found.adversarial.x, X).all()
    assert "robust loss    at least" in str(found)
    assert "robust loss at least" in found._repr_html_()
    one = advlab.attack(net, X, y, BALL, "fast", output=Output("regression", loss=loss))
    assert float(one.loss.mean()) == pytest.approx(float(truth), rel=0.02)
    assert one.broken is None


def test_a_network_of_numbers_is_bracketed_and_an_attack_of_ones_own_is_below():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, 1)).double()
    y = net(X).detach()[:, 0] + 0.1
    grid = torch.rand(4000, 1, D, dtype=torch.float64) * 2 - 1
    with torch.no_grad():
        sampled = (net(X + RADIUS * grid)[..., 0] - y).square().amax(0).mean()
    found = advlab.evaluate(net, X, y, BALL, "fast")
    assert float(sampled) * 0.98 <= found.robust_loss <= found.certified_loss
    weak = advlab.evaluate(net, X, y, BALL, PGD(steps=1), certificates=())
    assert found.clean_loss < weak.robust_loss <= found.robust_loss
    assert weak.certified_loss is None
    assert "any number" in str(weak)
    with pytest.raises(AdvlabError, match="FAB, which looks for a decision boundary"):
        advlab.evaluate(net, X, y, BALL, FAB())


@pytest.mark.parametrize(
    ("net", "y", "output", "says"),
    [
        (ONE, torch.arange(N) % 5, "auto", "5 different ones.*output='regression'"),
        (ONE, X[:, :2], "auto", "one number to come close to per output"),
        (ONE, torch.full((N,), torch.nan), "auto", "finite"),
        (TWO, torch.rand(N), "auto", "whole-number labels"),
        (TWO, ["a", "b", "c"] * 10, "auto", "3 different ones.*name all in the order"),
        (TWO, TWO_LABELS, "sigmoid", "output as one of auto, scores"),
        (TWO, TWO_LABELS, 3, "output as text or an Output"),
        (TWO, TWO_LABELS, "probability", "one number per example"),
        (TWO, TWO_LABELS, "multilabel", r"many labels as y of shape \(n, 2\)"),
        (TWO, TWO_LABELS, Output("scores", classes=("a", "b")), "labels among .*got [01]"),
        (TWO, TWO_LABELS, Output("scores", classes=(0, 1, 2)), "one class per score, 2"),
        (ONE, SIGNS, Output("logit", loss="absolute"), "a loss only for a regression"),
        (TWO, TWO_LABELS * 3 - 1, "scores", "labels|name all"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(net, y, output, says):
    if isinstance(y, torch.Tensor) and y.tolist() == (TWO_LABELS * 3 - 1).tolist():
        found = advlab.evaluate(net, X, y, BALL, "fast", output=output)
        assert "-1 is class 0, 2 is class 1" in found.reading
        return
    with pytest.raises(AdvlabError, match=says) as refused:
        advlab.evaluate(net, X, y, BALL, "fast", output=output)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_is_attacked_in_float32_and_judged_as_the_model_sees_it(kind):
    torch.manual_seed(0)
    net = nn.Sequential(affine(3), nn.ReLU(), nn.Linear(3, 3)).to(kind)
    x = X.float()
    with torch.no_grad():
        y = net(x.to(kind)).argmax(1)
    found = advlab.attack(net, x, y, BALL, FAB(), quiet=True)
    assert found.x.dtype == torch.float32
    assert BALL.contains(found.x, x).all()
    with torch.no_grad():
        margins = margin(net(found.x.to(kind)).float(), y)
    assert torch.equal(found.loss, margins)
    assert torch.equal(found.broken, ~(margins < 0))
    assert 0 < found.broken.sum() < N
    judged = advlab.evaluate(net, x.to(kind), y, BALL, "fast", checks=False)
    assert judged.certified_error is None
    assert set(judged.refused.values()) == {f"the network has a change of type to {kind}"}
    assert f"rounding to {str(kind)[6:]}" in judged.warnings[0]
