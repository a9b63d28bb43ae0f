"""`evaluate` and `AutoAttack.run` are one cascade: same rows, same accounts, same ties."""

from dataclasses import replace

import evaluated_nets as nets
import pytest
import torch
from torch import nn

import advlab
from advlab.attacks import AutoAttack
from advlab.core.randomness import generator
from advlab.evaluation.batch import evaluate_batch
from advlab.evaluation.suites import plan
from advlab.losses import ModelLoss, is_error, margin
from advlab.threats import Ball

BALL = Ball(norm="linf", radius=0.15, box=(0.0, 1.0))
SHORT = {"steps": 10, "queries": 60}


def accounts(results) -> list:
    return [replace(result, seconds=0.0) for result in results]


@pytest.mark.parametrize("version", ["standard", "plus", "rand"])
def test_both_find_the_same_and_account_for_it_alike(version):
    x, y = nets.blobs()
    model, attack = nets.trained(), AutoAttack(version, **SHORT)
    found, results = attack.run(
        ModelLoss(model, y, margin), x, BALL, rng=generator("evaluate", 0, 0)
    )
    rows = evaluate_batch(model, x, y, BALL, plan(attack), (), generator("evaluate", 0, 0))
    assert torch.equal(rows.worst, found.loss)
    assert torch.equal(rows.broken, is_error(found.loss))
    assert accounts(rows.members) == accounts(results)
    assert torch.equal(rows.points, found.x[rows.shown])
    whole = advlab.evaluate(model, x, y, BALL, attack, certificates=(), checks=False)
    assert accounts(whole.members) == accounts(results)
    assert whole.robust_error == float(rows.broken.double().mean())


def test_images_are_attacked_with_channels_last_and_judged_as_given():
    seen, net, (x, y) = [], nets.convolutional(), nets.pictures()
    net[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].stride()))
    ball = Ball(norm="linf", radius=0.05, box=(0.0, 1.0))
    found, results = AutoAttack(**SHORT).run(
        ModelLoss(net, y, margin), x, ball, rng=generator("evaluate", 0, 0)
    )
    direct = _channels_last(seen)
    seen.clear()
    rows = evaluate_batch(
        net, x, y, ball, plan(AutoAttack(**SHORT)), (), generator("evaluate", 0, 0)
    )
    assert _channels_last(seen) == direct
    # In the usual layout: the clean inputs, two rows to compare layouts, one look per member.
    assert sum(direct) >= len(direct) - 6
    assert torch.equal(rows.worst, found.loss)
    assert accounts(rows.members) == accounts(results)
    with torch.no_grad():
        again = margin(net(found.x), y)[rows.broken]
    # Processors add up the rows of another batch in another order.
    torch.testing.assert_close(again, found.loss[rows.broken], rtol=1e-5, atol=1e-6)
    assert (again >= 0).all()
    seen.clear()
    advlab.evaluate(net, x, y, ball, AutoAttack(**SHORT), certificates=())
    assert sum(_channels_last(seen)) > 0.9 * len(seen)


def _channels_last(strides: list[tuple[int, ...]]) -> list[bool]:
    """By strides: the channels of a pixel lie side by side."""
    return [stride[1] == 1 and stride[3] > 1 for stride in strides]


def test_ties_are_errors_in_both():
    x, y = nets.blobs(10)
    model = nets.Around(behind=lambda z: 0 * z)
    found, results = AutoAttack(**SHORT).run(
        ModelLoss(model, y, margin), x, BALL, rng=generator("test")
    )
    whole = advlab.evaluate(model, x, y, BALL, AutoAttack(**SHORT))
    assert whole.clean_error == whole.robust_error == whole.certified_error == 1.0
    assert whole.broken_by == ("clean",) * 10
    assert bool(is_error(found.loss).all())
    assert results[0].broken == whole.members[0].broken == 10


def test_rows_that_are_proved_robust_are_attacked_no_more():
    x, y = nets.blobs()
    model, chosen = nets.trained(), plan(AutoAttack(**SHORT))
    rows = evaluate_batch(model, x, y, BALL, chosen, ["crown", "ibp"], generator("test"))
    clean, first, second, *_ = rows.members
    by = [
        name for name, bound in zip(rows.bounded_by, rows.bound.tolist(), strict=True) if bound < 0
    ]
    assert by.count("ibp") > 0
    assert by.count("crown") > 0
    assert first.rows == clean.rows - clean.broken - by.count("ibp")
    assert second.rows == first.rows - first.broken - by.count("crown")


class Cyclic:
    """A model as users wrap them: a callable whose parts know each other."""

    def __init__(self):
        self.net, self.parent = nets.trained(), self

    def __call__(self, x):
        return self.net(x)


class CyclicModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nets.trained()
        self.behind = lambda z: z if self.net is not None else -z

    def forward(self, x):
        return self.behind(self.net(x))


@pytest.mark.parametrize("model", [Cyclic, CyclicModule])
def test_without_a_store_nothing_is_fingerprinted(model):
    x, y = nets.blobs(30)
    own, wrapped = (
        advlab.evaluate(one, x, y, BALL, "fast", certificates=(), checks=False)
        for one in (nets.trained(), model())
    )
    assert wrapped.broken_by == own.broken_by
    assert accounts(wrapped.members) == accounts(own.members)
