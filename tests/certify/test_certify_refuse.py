"""What cannot be bounded is refused in words, and what is read is read from any form."""

import pytest
import torch
from certify_nets import Residual, network
from torch import nn

from advlab.certify import CERTIFICATES, IBP, BranchAndBound, Crown, CrownIBP, LinearExact, certify
from advlab.core.errors import AdvlabError
from advlab.models import Stack
from advlab.threats import Ball

BALL = Ball(norm="linf", radius=0.1)


class Through(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(4, 3, batch_first=True).double()

    def forward(self, x):
        return self.layer(x[:, None])[0][:, -1]


REFUSED = {
    "matrix product": lambda x: x @ x.T,
    "batch mean": lambda x: x - x.mean(0),
    "batch mean kept": lambda x: x - x.mean(0, keepdim=True),
    "softmax over the batch": lambda x: x.softmax(0),
    "mask by value": lambda x: torch.where(x > 0.5, x, -x),
    "constant": lambda x: torch.zeros(len(x), 3, dtype=x.dtype),
    "indices": lambda x: (
        nn.functional.max_pool1d(x[:, None], 2, return_indices=True)[1][:, 0] * x[:, :2]
    ),
    "float": lambda x: x.float().double() * 1.0,
    "first rows": lambda x: x - x[:1],
    "rows the other way round": lambda x: x.flip(0),
    "turned twice": lambda x: (x.T - x.T[:, :1]).T,
    "written": lambda x: torch.zeros(len(x), 4, dtype=x.dtype).copy_(x),
    "batch norm by the batch": lambda x: nn.functional.batch_norm(x, None, None, training=True),
    "by row number": lambda x: x * torch.arange(len(x), dtype=x.dtype)[:, None],
    "masked attention": lambda x: (x + torch.tensor([0.0, -torch.inf, 0.0, 0.0])).softmax(1),
    "sine": lambda x: x.sin(),
    "sorted": lambda x: x.sort(1)[0],
    "rounded": lambda x: x.round(),
    "lstm": Recurrent(nn.LSTM),
    "gru": Recurrent(nn.GRU),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    x, y = torch.rand(6, 4, dtype=torch.float64), torch.zeros(6, dtype=torch.long)
    net = Through(REFUSED[name])
    for kind in (IBP, CrownIBP):
        reason = kind().refuses(net, BALL, x)
        assert reason is not None
        assert len(reason) > 10
        with pytest.raises(AdvlabError, match="can bound"):
            kind().worst_margin(net, x, y, BALL)


def test_the_operation_is_named():
    x = torch.rand(6, 4)
    assert "operation sin" in str(IBP().refuses(Through(torch.sin), BALL, x))
    assert "Elementwise" in str(LinearExact().refuses(Through(torch.sigmoid), BALL, x))
    for kind in (nn.LSTM, nn.GRU):
        assert "recurrent" in str(IBP().refuses(Recurrent(kind).double(), BALL, x.double()))
    assert "Relu" in str(LinearExact().refuses(Through(torch.relu), BALL, x))


def test_a_value_that_does_not_matter_is_no_reason():
    def forward(x):
        x.sin()
        return x * 2

    assert IBP().refuses(Through(forward), BALL, torch.rand(3, 4)) is None


def test_crown_refuses_what_would_take_for_ever_and_says_how_much():
    net, x, _ = network("conv", 0)
    reason = Crown(work=10).refuses(net, BALL, x)
    assert "multiplications" in str(reason)
    assert "crown_ibp" in str(reason)
    assert Crown().refuses(net, BALL, x) is None


def test_branch_and_bound_is_for_one_small_hidden_layer():
    net, x, _ = network("deep_relu", 0)
    assert "more than one hidden layer" in str(BranchAndBound().refuses(net, BALL, x))
    two, x, _ = network("two_layer", 0)
    assert BranchAndBound().refuses(two, BALL, x) is None
    assert "l1" in str(BranchAndBound().refuses(two, Ball(norm="l1", radius=1.0), x))
    assert "weights" in str(BranchAndBound(weights=10).refuses(two, BALL, x))


def test_labels_must_fit():
    net, x, _ = network("mlp", 0)
    with pytest.raises(AdvlabError, match="labels"):
        IBP().worst_margin(net, x, torch.full((4,), 3), BALL)
    one, x, _ = network("two_layer", 0)
    with pytest.raises(AdvlabError, match="labels"):
        IBP().worst_margin(one, x, torch.full((4,), 2.0).double(), BALL)


def test_inputs_outside_the_box_are_refused():
    net, x, y = network("mlp", 0)
    with pytest.raises(AdvlabError, match="box"):
        IBP().worst_margin(net, x + 2, y, Ball(norm="linf", radius=0.1, box=(0.0, 1.0)))


def test_exported_programs_have_the_same_bounds():
    net, x, y = network("residual", 4)
    net.eval()
    rows = {0: torch.export.Dim.DYNAMIC}
    exported = torch.export.export(net, (x,), dynamic_shapes=(rows,)).module()
    for kind in (IBP, CrownIBP, Crown):
        plain = kind().worst_margin(net, x, y, BALL)
        torch.testing.assert_close(kind().worst_margin(exported, x, y, BALL), plain)


def test_networks_of_one_batch_size_are_refused():
    net, x, _ = network("two_layer", 0)
    assert "batch" in str(IBP().refuses(Stack([net, net]), BALL, x))
    fixed, x, _ = network("mlp", 0)
    exported = torch.export.export(fixed.eval(), (x,)).module()
    assert "batch" in str(IBP().refuses(exported, BALL, x))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_has_the_same_bounds():
    net, x, y = network("residual", 4)
    net.eval()
    traced = torch.jit.trace(net, x)
    plain = Crown().worst_margin(net, x, y, BALL)
    torch.testing.assert_close(Crown().worst_margin(traced, x, y, BALL), plain)


def test_certify_takes_the_cheapest_that_is_enough():
    net, x, y = network("two_layer", 6)
    seen = []
    small = certify(net, x, y, Ball(norm="linf", radius=1e-3), progress=lambda *a: seen.append(a))
    assert small.refused.keys() == {"linear"}
    # Row 0 has a wrong label: nothing can certify it, and everything was tried.
    assert small.bound[0] >= 0
    assert small.robust.tolist() == [False, True, True, True]
    assert small.by[1:] == ["ibp"] * 3
    assert seen[0] == ("ibp", 4, 4)
    assert seen[1] == ("lipschitz", 1, 1)
    without = certify(
        net, x, y, Ball(norm="linf", radius=1e-3), alive=torch.tensor([False, True, True, True])
    )
    assert without.bound[0] == torch.inf
    assert without.by[0] == ""


def test_certify_keeps_the_best_bound_whoever_gave_it():
    net, x, y = network("mlp", 6)
    ball = Ball(norm="l2", radius=0.3)
    result = certify(net, x, y, ball, batch=3)
    singly = {name: CERTIFICATES[name]().worst_margin(net, x, y, ball) for name in result.tried}
    for row, name in enumerate(result.by):
        assert float(singly[name][row]) == pytest.approx(float(result.bound[row]), abs=1e-12)
        if result.bound[row] >= 0:
            least = min(float(bound[row]) for bound in singly.values())
            assert float(result.bound[row]) == pytest.approx(least, abs=1e-12)
    assert "exact" in result.refused


def test_certify_stops_at_an_exact_bound_and_knows_names():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3)).double()
    x = torch.rand(5, 4, dtype=torch.float64)
    result = certify(net, x, torch.zeros(5, dtype=torch.long), BALL)
    assert result.by == ["linear"] * 5
    assert result.refused == {}
    with pytest.raises(AdvlabError, match="magic"):
        certify(net, x, torch.zeros(5, dtype=torch.long), BALL, ["magic"])


def test_a_network_nobody_can_read_is_refused_by_all():
    x = torch.rand(3, 4)
    result = certify(Through(torch.sin), x, torch.zeros(3, dtype=torch.long), BALL)
    assert result.refused.keys() == set(CERTIFICATES) - {"beta_crown", "smoothing"}
    assert not result.robust.any()


def test_a_residual_network_in_float32():
    torch.manual_seed(0)
    net, x = Residual(), torch.rand(3, 2, 6, 6)
    bound = Crown().worst_margin(net, x, torch.tensor([0, 1, 2]), BALL)
    assert bound.dtype == torch.float32
    assert bound.isfinite().all()
