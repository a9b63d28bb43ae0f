"""Layers that stand still or start anew, and the three stages of the purification paper."""

import copy

import pytest
import torch
from torch import nn

from advlab.core.errors import AdvlabError
from advlab.threats import Ball
from advlab.training import FrozenLayers, fit, freeze, recipe, rerandomise, split_at
from advlab.training.accuracy_goal import AccuracyGoal, RecordAccuracy, StopAtAccuracy

BALL = Ball("linf", 0.05)


class Scale(nn.Module):
    """A layer that cannot be drawn anew."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(1))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()),
        nn.Linear(8, 2),
    )


def data(n: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    y = torch.randint(0, 2, (n,), generator=rng)
    return torch.randn(n, 6, generator=rng) + 2.0 * (2 * y[:, None] - 1), y


def test_a_layer_splits_the_network_by_number_or_by_name():
    net = network()
    assert split_at(net, 2) == (["0", "1"], ["3.0", "3.1", "4"])
    assert split_at(net, "3") == split_at(net, "3.0") == split_at(net, 2)
    assert split_at(net, 1) == ([], ["0", "1", "3.0", "3.1", "4"])
    with pytest.raises(AdvlabError, match="a layer from 1 to 3, or its name; got 4"):
        split_at(net, 4)
    with pytest.raises(AdvlabError, match=r"a layer of the model: 0, 1, 3\.0"):
        split_at(net, "conv")


def test_layers_are_drawn_anew_from_the_generator_alone():
    net, other = network(), network()
    before = copy.deepcopy(net.state_dict())
    state = torch.get_rng_state()
    for one in (net, other):
        rerandomise(one, ["3.0", "3.1", "4"], torch.Generator().manual_seed(5))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(other.state_dict()[name], v) for name, v in net.state_dict().items())
    assert torch.equal(net[0].weight, before["0.weight"])
    assert not torch.equal(net[4].weight, before["4.weight"])
    bound = 1 / 8**0.5  # of torch's own initialisation
    assert 0.5 * bound < float(net[3][0].weight.detach().abs().max()) <= bound
    rerandomise(other, ["4"], torch.Generator().manual_seed(6))
    assert not torch.equal(net[4].weight, other[4].weight)
    with pytest.raises(AdvlabError, match="reset_parameters; got 0, a Scale"):
        rerandomise(nn.Sequential(Scale()), ["0"], torch.Generator())


def test_frozen_layers_keep_weights_and_statistics():
    net, (x, y) = network(), data()
    below, _ = split_at(net, 2)
    freeze(net, below)
    before = copy.deepcopy(net.state_dict())
    fit(net, x, y, steps=3, lr=0.1, ball=BALL, hooks=[FrozenLayers(2)])
    after = net.state_dict()
    for name, value in before.items():
        if name != "3.0.bias":  # BatchNorm takes it away again: its gradient is zero
            assert torch.equal(value, after[name]) == name.startswith(("0.", "1.")), name
    assert all(module.training for module in net.modules())
    # Without the hook the statistics of a frozen layer move.
    fit(net, x, y, steps=1, lr=0.1)
    assert not torch.equal(before["1.running_mean"], net.state_dict()["1.running_mean"])


def test_the_three_stages():
    net, (x, y) = network(), data()
    which = recipe("stages", layer=2, lr=0.05, epochs=30, schedule="constant")
    rng = torch.Generator().manual_seed(2)
    weights, runs = [], []
    for stage in which.stages(BALL, 5):
        if stage.prepare is not None:
            stage.prepare(net, rng)
            weights.append(copy.deepcopy(net.state_dict()))
        runs.append(
            fit(
                net,
                x,
                y,
                steps=60,
                batch=8,
                lr=stage.schedule,
                optimizer=stage.optimizer,
                objective=stage.objective,
                hooks=list(stage.hooks),
                rng=3,
            )
        )
        weights.append(copy.deepcopy(net.state_dict()))
    first, anew, clean, kept, last = weights
    assert [stage.name for stage in which.stages(BALL, 5)] == [
        "adversarial",
        "clean_above",
        "adversarial_above",
    ]
    for name in first:
        below = name.startswith(("0.", "1."))
        assert torch.equal(first[name], anew[name]) == below or "num_batches" in name
        assert torch.equal(first[name], clean[name]) == below or "num_batches" in name
        assert torch.equal(clean[name], kept[name])
        assert torch.equal(first[name], last[name]) == below or "num_batches" in name
    # The clusters are far apart: stage 3 is back at the accuracy of stage 1 before its end.
    assert [run.status for run in runs] == ["finished", "finished", "stopped"]
    assert runs[2].reason.startswith("clean and robust accuracy are back at")
    assert runs[2].steps < 60
    assert recipe("stages", stop_at_stage_1=False).stages(BALL, 5)[0].hooks == ()


def test_accuracy_is_the_mean_over_the_last_batches():
    net, (x, y) = network(), data()
    net.eval()
    goal = AccuracyGoal()
    record = RecordAccuracy(goal, over=10)
    fit(net, x, y, steps=4, lr=1e-9, ball=Ball("linf", 0.0), hooks=[record], rng=0)
    with torch.no_grad():
        right = float((net(x).argmax(1) == y).double().mean())
    assert goal.clean == pytest.approx(goal.robust)
    assert goal.clean == pytest.approx(right, abs=0.15)
    with pytest.raises(AdvlabError):
        StopAtAccuracy(goal, over=0)
    unreached = AccuracyGoal(clean=2.0, robust=0.0)
    run = fit(net, x, y, steps=3, lr=0.1, ball=BALL, hooks=[StopAtAccuracy(unreached, over=1)])
    assert run.status == "finished"
    reached = AccuracyGoal(clean=0.0, robust=0.0)
    run = fit(net, x, y, steps=9, lr=0.1, ball=BALL, hooks=[StopAtAccuracy(reached, over=2)])
    assert (run.status, run.steps, reached.clean) == ("stopped", 1, 0.0)
