"""A network that reads the numbers it computes takes another path elsewhere: it is refused."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from advlab.certify import CERTIFICATES, IBP, certify
from advlab.threats import Ball

BALL = Ball("linf", 0.2)


def by(choose):
    """A network whose sign hangs on something read from its input, the same for a whole batch."""
    return lambda x: x if choose(x) else -x


def shared_memory(x):
    copied = torch.empty_like(x)
    view = copied[:, :2]
    torch.add(x, 1.0, out=copied)
    return view


READS = {
    "float": by(lambda x: float(x.sum()) > 5),
    "int": by(lambda x: int(x.sum()) > 5),
    "bool": by(lambda x: bool(x.sum() > 5)),
    "if": by(lambda x: x.sum() > 5),
    "item": by(lambda x: x.sum().item() > 5),
    "tolist": by(lambda x: sum(x[:, 0].tolist()) > 5),
    "numpy": by(lambda x: x.detach().numpy().sum() > 5),
    "numpy of a batch statistic": by(lambda x: x.mean(0).detach().numpy()[0] > 0.5),
    "asarray": by(lambda x: np.asarray(x.detach()).sum() > 5),
    "dlpack": by(lambda x: np.from_dlpack(x.detach()).sum() > 5),
    "storage": by(lambda x: x.untyped_storage().tolist()[0] > 5),
    "data": by(lambda x: x.data.sum() > 5),
    "deepcopy": by(lambda x: copy.deepcopy(x).sum() > 5),
    "equal": by(lambda x: torch.equal(x, x.round())),
    "allclose": by(lambda x: torch.allclose(x, x.round())),
    "how many": by(lambda x: len((x > 0.5).nonzero()) > 3),
    "how many by a mask": by(lambda x: len(x[x > 0.5]) > 3),
    "how many different": by(lambda x: len(x.round().unique()) > 1),
    "as many times": lambda x: x.repeat_interleave((x[0] > 0.5).long() + 1, 1)[:, :2],
    "numpy and back": lambda x: torch.from_numpy(x.detach().numpy() * 2),
    "memory of a view": shared_memory,
}


@pytest.mark.parametrize("name", READS)
def test_what_reads_values_is_refused(name):
    x = torch.rand(6, 4, dtype=torch.float64)
    reason = IBP().refuses(READS[name], BALL, x)
    assert reason is not None
    assert "\n" not in reason
    result = certify(READS[name], x, torch.zeros(6, dtype=torch.long), BALL)
    assert result.refused.keys() == set(CERTIFICATES) - {"beta_crown", "smoothing"}
    assert not result.robust.any()


@pytest.mark.parametrize("name", ["numpy", "tolist", "item", "how many"])
def test_the_reason_says_that_it_depends_on_values(name):
    assert "depend" in str(IBP().refuses(READS[name], BALL, torch.rand(6, 4)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_that_lists_its_values_is_refused():
    class Listed(nn.Module):
        def forward(self, x):
            values: list[float] = x[:, 0].tolist()
            return x if values[0] > 0.5 else -x

    class Branch(nn.Module):
        def forward(self, x):
            return x if x.sum() > 5 else -x

    for net in (Listed(), Branch()):
        scripted = torch.jit.script(net)
        assert "depend" in str(IBP().refuses(scripted, BALL, torch.rand(6, 4)))


def test_reading_a_constant_or_a_shape_is_allowed():
    weight = torch.rand(4, dtype=torch.float64)

    def forward(x):
        scale = weight.numpy().sum() + weight.tolist()[0] + weight.nonzero().shape[0] + x.shape[1]
        return x * scale

    assert IBP().refuses(forward, BALL, torch.rand(6, 4, dtype=torch.float64)) is None
