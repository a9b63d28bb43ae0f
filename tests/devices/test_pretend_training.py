"""Training, stacks and measures on the pretend device: the CPU's weights, bit for bit."""

from functools import partial

import pytest
import torch
from evaluated_nets import blobs
from pretend_device import PretendDevice, both
from torch import Tensor, nn

from advlab import fit
from advlab.attacks import PGD
from advlab.core.randomness import generator, generators
from advlab.measure.audit import Audit
from advlab.measure.linearity import descent_to_boundary, lin_residual
from advlab.measure.sharpness import input_sharpness
from advlab.models import Normalised, ResNet9, SmallCNN, Stack, TwoLayer
from advlab.threats import Ball
from advlab.training import (
    L1,
    MART,
    TRADES,
    Adversarial,
    Checkpoint,
    Clean,
    Mixed,
    Penalize,
    Probe,
    Project,
    WholeBall,
)

BALL = Ball("linf", 0.1, (0.0, 1.0))
PGD3 = PGD(steps=3, step_size=0.4)
OBJECTIVES = {
    "clean": Clean(),
    "adversarial": Adversarial(ball=BALL, attack=PGD3, warmup=2),
    "mixed": Mixed(ball=BALL, attack=PGD3),
    "trades": TRADES(ball=BALL, attack=PGD3),
    "mart": MART(ball=BALL, attack=PGD3),
}


def network(seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3))


def trained(device: torch.device, data: torch.device | None = None, **more) -> list[Tensor]:
    x, y = (part.to(data or device) for part in blobs(24))
    net = network().to(device)
    found = fit(net, x, y, **{"steps": 3, "lr": 0.1, "batch": 10, "rng": 1, **more})
    return [*(w.detach() for w in net.state_dict().values()), found.log.losses()]


def same(run) -> None:
    for one, other in zip(*both(run), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_every_objective_trains_to_the_same_weights(name):
    same(lambda device: trained(device, objective=OBJECTIVES[name], optimizer=torch.optim.Adam))


@pytest.mark.parametrize("batch", [None, 10])
def test_data_may_stay_on_the_cpu(batch):
    cpu = torch.device("cpu")
    same(lambda device: trained(device, cpu, ball=BALL, attack=PGD3, batch=batch))


def test_hooks_and_checkpoints(tmp_path):
    def run(device: torch.device) -> list[Tensor]:
        def hooks() -> list:
            probe = Probe({"norm": lambda net: net[0].weight.norm()}, every=2)
            end = Checkpoint(tmp_path / device.type, every=2)
            return [probe, Penalize(L1(weight=0.01)), Project(WholeBall(radius=0.3)), end]

        some = partial(trained, device, ball=BALL, attack=PGD3, optimizer=torch.optim.Adam)
        whole = some(steps=5, hooks=hooks()[:3])
        some(steps=5, hooks=hooks())
        # The file is of step 4: what follows is the last step, from what was read.
        again = some(steps=5, hooks=hooks())
        assert all(torch.equal(*pair) for pair in zip(whole, again, strict=True))
        return again

    same(run)


def test_the_table_of_a_run_and_a_device_without_float64():
    def run(device: torch.device) -> list[Tensor]:
        x, y = (part.to(device) for part in blobs(12))
        probe = Probe({"norm": lambda net: net[0].weight.norm()})
        found = fit(network().to(device), x, y, steps=2, lr=0.1, ball=BALL, hooks=[probe])
        return [torch.from_numpy(found.log.table().to_numpy())]

    plain, pretended = both(run, float64=False)
    assert torch.equal(plain[0], pretended[0])


def drawn(rng: torch.Generator) -> nn.Module:
    return TwoLayer.draw(8, 6, "relu", rng, init="torch", bias=True, dtype=torch.float32)


def test_stacks_train_and_give_replicates():
    def run(device: torch.device) -> list[Tensor]:
        stack = Stack.draw(drawn, generators("net", seeds=[0, 1])).to(device)
        x, y = blobs(12)
        both_x = torch.stack([x, x]).to(device)
        signs = torch.where(y > 0, 1.0, -1.0)
        labels = torch.stack([signs, signs]).to(device)
        rngs = generators("fit", seeds=[0, 1])
        about = {"ball": BALL, "attack": PGD3, "loss": "logistic", "batch": 5}
        found = fit(stack, both_x, labels, steps=3, lr=0.1, rng=rngs, **about)
        alone = stack.replicate(1)(x.to(device)).detach()
        return [*(w.detach() for w in stack.parameters()), found.log.losses(), alone]

    same(run)


@pytest.mark.parametrize("optimizer", [None, torch.optim.Adam])
def test_the_audit_of_a_run_has_no_complaint(optimizer):
    def run(device: torch.device) -> list[Tensor]:
        audit = Audit(network(), optimizer=optimizer, projection=WholeBall(radius=5.0))
        hooks = [audit, Project(WholeBall(radius=5.0))]
        weights = trained(device, ball=BALL, attack=PGD3, optimizer=optimizer, hooks=hooks)
        report = audit.report()
        assert report.ok, report
        return [*weights, report.loss, report.bound]

    same(run)


def test_sharpness_and_linearity():
    def run(device: torch.device) -> list[Tensor]:
        x, y = (part[:6].to(device) for part in blobs(24))
        net = network().to(device).eval()
        few = {"draws": 4, "starts": 1, "climb": 2, "along": 2, "rng": generator("sharp")}
        found = input_sharpness(net, x, y, Ball("l2", 0.1), **few)
        signs = torch.where(y > 0, 1.0, -1.0)
        two = drawn(generator("two")).to(device)
        move = descent_to_boundary(two, x, signs, WholeBall(radius=0.1))
        far = torch.tensor(lin_residual(two, x, move))
        return [found.loss, found.slope, found.steepest, found.rise, found.steepest_bound, far]

    same(run)


def test_a_model_on_the_device_is_never_mixed_with_labels_left_behind():
    x, y = blobs(12)
    with PretendDevice() as device:
        net = network().to(device.place)
        with pytest.raises(RuntimeError, match="same device"):
            nn.functional.cross_entropy(net(x.to(device.place)), y)


ACTIVATIONS = ("relu", "leaky_relu", "smoothed_leaky_relu", "quadratic_relu", "gelu", "sin_cos")


def test_the_networks_of_the_package():
    def run(device: torch.device) -> list[Tensor]:
        found = []
        for name in ACTIVATIONS:
            net = TwoLayer.draw(8, 6, name, generator("two"), init="torch", bias=True)
            x = blobs(4)[0].double().to(device).requires_grad_()
            found += torch.autograd.grad(net.to(device)(x).sum(), x)
        images = torch.rand(2, 3, 32, 32, generator=generator("images")).to(device)
        deep = ResNet9.draw(generator("deep"), width=2).eval()
        small = SmallCNN.draw(generator("small"), width=2)
        nets = [(Normalised(deep, [0.5] * 3, [0.2] * 3), images), (small, images[:, :1, :28, :28])]
        return found + [net.to(device)(x).detach() for net, x in nets]

    same(run)
