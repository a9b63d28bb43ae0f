"""Training on loaders: the same as on arrays, and a run that was cut short goes on exactly."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import cross_entropy
from advlab.threats import Ball
from advlab.training import Checkpoint, Probe, StopWhen, fit

ROWS = 60


def numbers(n=ROWS):
    rng = generator("loader batches")
    return torch.randn(n, 5, generator=rng), torch.randint(3, (n,), generator=rng)


def network(dropout=0.0):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 3))


class Noisy(Dataset):
    """Examples with noise from each of the three global generators."""

    def __init__(self, shift=0.0):
        self.x, self.y = numbers()
        self.shift = shift

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        noise = 0.1 * torch.rand(()) + 0.1 * np.random.rand() + self.shift
        return self.x[i] + float(noise), int(self.y[i])


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_a_list_of_one_batch_is_full_batch_training():
    x, y = numbers()
    plain, listed = network(), network()
    one = fit(plain, x, y, steps=7, lr=0.3)
    two = fit(listed, [(x, y)], steps=7, lr=0.3)
    assert torch.equal(one.log.losses(), two.log.losses())
    assert torch.equal(weights(plain), weights(listed))


def test_epochs_are_passes_over_the_data():
    x, y = numbers()
    assert fit(network(), x, y, epochs=3, lr=0.1, batch=25).steps == 9
    assert fit(network(), x, y, epochs=0.5, lr=0.1, batch=10).steps == 3
    assert fit(network(), DataLoader(TensorDataset(x, y), 25), epochs=2, lr=0.1).steps == 6
    assert fit(network(), Noisy(), epochs=2, batch=30, lr=0.1).steps == 4


@pytest.mark.parametrize("own", [False, True], ids=["global", "own generator"])
@pytest.mark.parametrize("cut", [1, 7, 12])
def test_a_run_on_a_loader_goes_on_with_the_same_bits(tmp_path, cut, own):
    """Shuffled, noisy examples and dropout, ended in the midst of an epoch."""

    def run(file=None, stop=None):
        model = network(dropout=0.3)
        rng = torch.Generator().manual_seed(5) if own else None
        loader = DataLoader(Noisy(), batch_size=12, shuffle=True, generator=rng)
        hooks = [StopWhen(lambda _: False)]
        if stop is not None:
            hooks = [StopWhen(_Count(stop))]
        if file is not None:
            hooks.append(Checkpoint(file, every=1))
        ball = Ball("linf", 0.05)
        return fit(model, loader, epochs=3, lr=0.2, ball=ball, hooks=hooks, rng=3, reuse=True)

    torch.manual_seed(1)
    whole = run()
    torch.manual_seed(1)
    run(tmp_path / "c.safetensors", cut)
    torch.manual_seed(77)  # a process of its own has other numbers
    np.random.seed(4)
    with pytest.warns(UserWarning, match="hooks"):  # the stop is a part of the run
        again = run(tmp_path / "c.safetensors")
    assert again.steps == whole.steps == 15
    assert torch.equal(again.log.losses(), whole.log.losses())
    assert torch.equal(weights(again.model), weights(whole.model))


class _Count:
    def __init__(self, stop):
        self.left = stop

    def __call__(self, model):
        self.left -= 1
        return self.left < 0


def test_other_data_behind_the_loader_are_refused(tmp_path):
    file = tmp_path / "c.safetensors"

    def run(shift, steps=8):
        loader = DataLoader(Noisy(shift), batch_size=12, shuffle=True)
        return fit(network(), loader, steps=steps, lr=0.1, rng=1, hooks=[Checkpoint(file, every=3)])

    run(0.0)
    with pytest.raises(AdvlabError, match="other batches"):
        run(1e-3)
    assert run(0.0).steps == 8


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (iter([(torch.zeros(2, 5), torch.zeros(2).long())]), "read again"),
        ([], "at least one batch|real numbers in y"),
        (3, "data as a Dataset"),
    ],
    ids=["once", "empty", "a number"],
)
def test_what_is_no_data_is_refused_in_a_line(data, message):
    with pytest.raises(AdvlabError, match=message):
        fit(network(), data, steps=2, lr=0.1)


def test_batches_of_a_loader_are_its_own_and_steps_or_epochs_one_of_the_two():
    x, y = numbers()
    loader = DataLoader(TensorDataset(x, y), 10)
    with pytest.raises(AdvlabError, match="batch left out"):
        fit(network(), loader, steps=2, lr=0.1, batch=5)
    with pytest.raises(AdvlabError, match="one of the two"):
        fit(network(), x, y, lr=0.1)
    with pytest.raises(AdvlabError, match="one of the two"):
        fit(network(), x, y, lr=0.1, steps=2, epochs=1)
    with pytest.raises(AdvlabError, match="epochs as a number"):
        fit(network(), x, y, lr=0.1, epochs=-1)


def test_a_transform_sees_every_batch_and_is_part_of_the_run(tmp_path):
    x, y = numbers()

    def run(transform, file):
        return fit(
            network(), x, y, steps=4, lr=0.1, batch=20, transform=transform, rng=0,
            hooks=[Checkpoint(file, every=2)],
        )  # fmt: skip

    doubled = run(_twice, tmp_path / "a")
    by_hand = fit(network(), 2 * x, y, steps=4, lr=0.1, batch=20, rng=0)
    assert torch.equal(doubled.log.losses(), by_hand.log.losses())
    with pytest.raises(AdvlabError, match="transform"):
        run(_thrice, tmp_path / "a")


def _twice(x, rng):
    return 2 * x


def _thrice(x, rng):
    return 3 * x


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_parts_of_a_batch_add_up_to_the_whole(parts):
    """Without randomness and BatchNorm: the same step up to the order of sums (float64)."""
    x, y = numbers()
    one, cut = network().double(), network().double()
    ball = Ball("l2", 0.0)
    whole = fit(one, x.double(), y, steps=5, lr=0.3, batch=25, ball=ball, rng=0)
    added = fit(cut, x.double(), y, steps=5, lr=0.3, batch=25, ball=ball, rng=0, accumulate=parts)
    assert torch.allclose(whole.log.losses(), added.log.losses(), atol=1e-12)
    assert torch.allclose(weights(one), weights(cut), atol=1e-12)


def test_statistics_of_parts_are_their_mean():
    """BatchNorm's running mean after one step is that of the mean over parts of equal size."""
    x, y = numbers(40)
    net = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))
    fit(net, x, y, steps=0, lr=0.1, accumulate=4)
    assert torch.allclose(net[0].running_mean, 0.1 * x.mean(0), atol=1e-6)
    assert int(net[0].num_batches_tracked) == 1


def test_probes_and_soft_labels():
    x, y = numbers()
    shares = torch.nn.functional.one_hot(y, 3).float()

    def soft(outputs, targets):
        return -(targets * outputs.log_softmax(1)).sum(1)

    probe = Probe({"loss": lambda m: cross_entropy(m(x), y).mean()})
    one = fit(network(), x, shares, steps=5, lr=0.3, loss=soft, hooks=[probe])
    assert torch.allclose(one.log.probe("loss"), one.log.losses(), atol=1e-6)
