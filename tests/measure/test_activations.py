"""Sparsity of activations against counting by hand; images that excite a neuron against algebra."""

import pytest
import torch
from torch import nn

from advlab.core.errors import AdvlabError
from advlab.measure.activation_maximisation import maximise_activation
from advlab.measure.activation_sparsity import activation_sparsity
from advlab.models import SmallCNN


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class TwoBlocks(nn.Module):
    """An in-place ReLU that runs twice, after BatchNorm."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 4, 3), nn.Linear(4, 5)
        self.norm, self.relu = nn.BatchNorm2d(4), nn.ReLU(inplace=True)
        with torch.no_grad():
            self.norm.bias[0] = -1e3  # a channel that never is active

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.relu(self.norm(self.first(x))).mean((2, 3))
        return self.relu(self.second(hidden)).sum(1)


def drawn() -> TwoBlocks:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return TwoBlocks()


def test_shares_are_those_of_a_network_run_by_hand():
    model, x = (
        SmallCNN.draw(seeded(0), width=4, hidden=8, side=8),
        torch.randn(11, 1, 8, 8, generator=seeded(1)),
    )
    found = activation_sparsity(model, x, batch=4)
    assert list(found) == ["layers.1", "layers.4", "layers.8"]
    hidden = x
    for k, layer in enumerate(model.layers):
        hidden = layer(hidden).detach()
        if f"layers.{k}" in found:
            one = found[f"layers.{k}"]
            assert one.share == pytest.approx(float((hidden > 0).double().mean()))
            units = (hidden > 0).double().transpose(0, 1).flatten(1).mean(1)
            torch.testing.assert_close(one.units, units)
    assert model.training
    assert all(not m._forward_hooks for m in model.modules())


def test_dead_channels_layers_by_name_and_layers_that_run_twice():
    model, x = drawn(), torch.randn(6, 2, 6, 6, generator=seeded(1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = activation_sparsity(model, x, ["norm"], tolerance=100.0)
    assert found["norm"].units.tolist() == [1, 0, 0, 0]
    assert found["norm"].dead == 0.75
    with pytest.raises(RuntimeError, match="size"):  # 4 channels, then 5: not one layer of units
        activation_sparsity(model, x)
    assert all(torch.equal(before[k], value) for k, value in model.state_dict().items())
    assert all(not m._forward_hooks for m in model.modules())


def test_what_is_not_there_is_refused():
    with pytest.raises(AdvlabError, match=r"'layers\.1'"):
        activation_sparsity(SmallCNN.draw(seeded(0)), torch.zeros(1, 1, 28, 28), ["relu"])
    with pytest.raises(AdvlabError, match="ReLU layers"):
        activation_sparsity(nn.Linear(2, 2), torch.zeros(1, 2))
    unused = drawn()
    unused.spare = nn.ReLU()
    with pytest.raises(AdvlabError, match="spare"):
        activation_sparsity(unused, torch.randn(2, 2, 6, 6), ["spare"])


@pytest.mark.parametrize("decay", [0.02, 0.1])
def test_a_linear_unit_ends_where_decay_and_gradient_balance(decay):
    """x = towards + step/decay * w/|w| is where step * w/|w| = decay * (x - towards)."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 3)).double()
    with torch.no_grad():
        model[1].weight.copy_(torch.randn(3, 12, generator=seeded(4)))
    image = maximise_activation(
        model, "1", [2, 0], (3, 2, 2), steps=600, step_size=0.01, decay=decay, towards=0.4,
        box=(-10, 10), rng=0,
    )  # fmt: skip
    w = model[1].weight.detach()[[2, 0]]
    expected = 0.4 + 0.01 / decay * (w / w.norm(dim=1, keepdim=True)).view(2, 3, 2, 2)
    torch.testing.assert_close(image, expected, atol=1e-5, rtol=0)


def test_without_decay_a_channel_ends_at_the_corner_that_excites_it_most():
    """One 3x3 filter at the centre of a 3x3 image: the best image is 1 where it is positive."""
    model = nn.Sequential(nn.Conv2d(1, 5, 3, padding=1), nn.ReLU(inplace=True)).double()
    with torch.no_grad():  # no weight so small that its pixel has not arrived yet
        draws = torch.rand(2, 5, 1, 3, 3, generator=seeded(2))
        model[0].weight.copy_((draws[0] - 0.5).sign() * (0.1 + draws[1]))
    image = maximise_activation(
        model, "0", range(5), (1, 3, 3), unit="centre", steps=300, decay=0.0, rng=1
    )
    assert torch.equal(image, (model[0].weight.detach() > 0).double())


def test_rows_do_not_see_each_other_a_seed_repeats_and_the_model_is_left_alone():
    model = drawn()
    assert model.training
    settings = {"shape": (2, 6, 6), "steps": 10, "rng": 3}
    both = maximise_activation(model, "first", [1, 3], **settings)
    swapped = maximise_activation(model, "first", [1, 0], **settings)
    assert torch.equal(both[0], swapped[0])
    assert not torch.equal(both[1], swapped[1])
    assert model.training
    assert model.norm.num_batches_tracked == 0
    assert all(p.grad is None for p in model.parameters())
    before, after = (
        model.first(x)[torch.arange(2), [1, 3]].mean((1, 2))
        for x in (maximise_activation(model, "first", [1, 3], (2, 6, 6), steps=1, rng=3), both)
    )
    assert (after > before).all()
    with pytest.raises(AdvlabError, match=r"0 \.\. 3"):
        maximise_activation(model, "first", [4], **settings)
