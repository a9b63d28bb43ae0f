"""The pretend device itself: it must fail on the mistakes that real accelerators fail on."""

import copy

import pytest
import torch
from pretend_device import PLACE, PretendDevice, PretendTensor
from torch import Tensor, nn

CPU_RNG = torch.Generator().manual_seed(0)


@pytest.fixture
def device():
    with PretendDevice() as entered:
        yield entered


@pytest.fixture
def x(device) -> Tensor:
    return torch.arange(6.0).reshape(2, 3).to(PLACE)


MIXED = {
    "a sum": lambda x: x + torch.zeros(2, 3),
    "a sum in place": lambda x: torch.zeros(2, 3).add_(x),
    "a choice": lambda x: torch.where(x > 0, torch.zeros(2, 3), x),
    "a product of matrices": lambda x: x @ torch.zeros(3, 2),
    "numbers in a list": lambda x: torch.stack([torch.tensor(1.0), x.sum()]),
    "an index on the device into the CPU": lambda x: torch.zeros(6)[x.long()],
    "gather": lambda x: x.gather(1, torch.zeros(2, 1, dtype=torch.long)),
    "a layer left behind": nn.Linear(3, 2),
    "values written into a mask": lambda x: x.index_put_((x > 1,), torch.ones(4)),
}


@pytest.mark.parametrize("mistake", list(MIXED))
def test_tensors_of_two_devices_are_refused(x, mistake):
    with pytest.raises(RuntimeError, match="same device"):
        MIXED[mistake](x)


DRAWS = {
    "randn": lambda: torch.randn(3, generator=CPU_RNG, device=PLACE),
    "rand": lambda: torch.rand(3, generator=CPU_RNG, device=PLACE),
    "randperm": lambda: torch.randperm(3, generator=CPU_RNG, device=PLACE),
    "randint": lambda: torch.randint(3, (2,), generator=CPU_RNG, device=PLACE),
    "normal_": lambda: torch.empty(3, device=PLACE).normal_(generator=CPU_RNG),
    "uniform_ of empty_like": lambda: torch.empty_like(torch.zeros(3).to(PLACE)).uniform_(
        generator=CPU_RNG
    ),
}


@pytest.mark.parametrize("draw", list(DRAWS))
def test_a_cpu_generator_cannot_fill_the_device(device, draw):
    with pytest.raises(RuntimeError, match="generator"):
        DRAWS[draw]()


@pytest.mark.parametrize("view", [Tensor.numpy, Tensor.__array__, memoryview])
def test_numpy_cannot_see_the_device(x, view):
    with pytest.raises((RuntimeError, TypeError)):
        view(x)


def test_a_device_without_float64():
    with PretendDevice(float64=False), pytest.raises(TypeError, match="float64"):
        torch.zeros(2).to(PLACE).double()


WAITS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool((x > 0).any()),
    "float": lambda x: float(x.max()),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "nonzero": lambda x: x.nonzero(),
    "a mask as an index": lambda x: x[x > 1],
    "a CPU index": lambda x: x[torch.tensor([1])],
    "equal": lambda x: torch.equal(x, x),
    "a copy to the CPU": lambda x: torch.zeros(2, 3).copy_(x),
}


@pytest.mark.parametrize("look", list(WAITS))
def test_each_wait_for_the_device_is_counted_once(device, x, look):
    device.synchronisations.clear()
    WAITS[look](x)
    assert sum(device.synchronisations.values()) == 1


def test_work_on_the_device_waits_for_nothing(device, x):
    device.synchronisations.clear()
    y = torch.where(x > 2, x * torch.tensor(2.0), 0.0).clamp(min=1).sort(dim=1).values
    y[0] = 5
    assert (y[torch.tensor([0], device=PLACE)] + x.new_zeros(1, 3)).device == PLACE
    assert not device.synchronisations


def test_what_autograd_layers_and_transforms_give_is_what_the_cpu_gives():
    def run(place) -> list[Tensor]:
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)
        )
        net = copy.deepcopy(net.to(place))
        x = torch.rand(3, 1, 4, 4).to(place).requires_grad_()
        optimizer = torch.optim.Adam(net.parameters())
        nn.functional.cross_entropy(net(x), torch.tensor([0, 1, 2], device=place)).backward()
        optimizer.step()
        rows = torch.func.vmap(lambda row: (row * net[4].weight).logsumexp(0).sum())
        slopes = torch.func.grad(lambda w: rows(w).square().sum())(torch.ones(4, 8, device=place))
        assert x.device == place
        return [x.grad, slopes, *(value.detach() for value in net.state_dict().values())]

    plain = run(torch.device("cpu"))
    with PretendDevice():
        pretended = [one.cpu() for one in run(PLACE)]
    assert all(torch.equal(*pair) for pair in zip(plain, pretended, strict=True))


def test_views_share_memory_and_data_can_be_replaced(x):
    x.view(6)[1:3].mul_(10)
    assert x.tolist() == [[0, 10, 20], [3, 4, 5]]
    x.data = torch.ones(2, 3, device=PLACE)
    assert (x + 1).tolist() == [[2, 2, 2], [2, 2, 2]]


def test_factories_make_tensors_of_the_device(device):
    made = [
        torch.zeros(2, device=PLACE), torch.tensor([1.0], device=PLACE),
        torch.as_tensor([2], device=PLACE), torch.arange(3, device=PLACE),
        torch.full((2,), 3.0, device="lazy"), torch.eye(2, device=PLACE),
    ]  # fmt: skip
    assert all(isinstance(one, PretendTensor) and one.device == PLACE for one in made)
    assert not isinstance(made[0].cpu(), PretendTensor)
