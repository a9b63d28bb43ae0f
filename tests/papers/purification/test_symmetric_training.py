"""The explicit objective of symmetric ReLU networks against autograd, neuron for neuron."""

import pytest
import torch

from advlab.attacks import FGM, PGD, Random
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.losses import ModelLoss, logistic
from advlab.models import Stack, TwoLayer
from advlab.papers.purification.models import BiasGrowth, SymmetricReLU
from advlab.papers.purification.reductions import SymmetricAdversarial, SymmetricLoss
from advlab.threats import Ball, Cap
from advlab.training import (
    L2L3,
    Adversarial,
    AttackedObjective,
    ModelSchedule,
    NeuronCap,
    Penalize,
    Project,
    StepContext,
    fit,
)

D, N, R = 8, 30, 3


def stack(sigma: float = 0.0) -> Stack:
    """Half of the neurons are so small that they cannot fire."""
    nets = []
    for rng in generators("nets", seeds=range(R)):
        net = SymmetricReLU.draw(D, 12, 0.7, 0.5, rng, sigma)
        with torch.no_grad():
            net.weight[6:] *= 0.05
        nets.append(net)
    return Stack(nets)


def data() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(R, N, D, generator=generator("x"), dtype=torch.float64)
    return x, torch.where(x.sum(2) >= 0, 1.0, -1.0).double()


def context(objective: AttackedObjective, nets: Stack) -> StepContext:
    x, y = data()
    rng = generators("attack", seeds=range(R))
    return objective.context(nets, x.flatten(0, 1), y.flatten(), rng, R)


@pytest.mark.parametrize("sigma", [0.0, 0.15])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("attack", [FGM(), PGD(steps=4), Random()])
def test_values_and_gradients_are_those_of_autograd(sigma, norm, attack):
    nets, ball = stack(sigma), Ball(norm=norm, radius=0.2)
    (values, grads), (plain, by_hand) = (
        objective.value_and_grad(context(objective, nets), list(nets.parameters()))
        for objective in (
            kind(loss="logistic", ball=ball, attack=attack)
            for kind in (SymmetricAdversarial, Adversarial)
        )
    )
    torch.testing.assert_close(values, plain, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(grads[0], by_hand[0], rtol=1e-9, atol=1e-12)


def test_neurons_that_cannot_fire_are_left_out_and_all_others_kept():
    nets, (x, y), ball = stack(), data(), Ball(norm="l2", radius=0.2)
    loss = SymmetricLoss.around(nets, y.flatten(), logistic, x.flatten(0, 1), ball)
    for r, net in enumerate(loss.nets):
        points = x[r] + 0.2 * torch.nn.functional.normalize(
            torch.randn(2000, N, D, generator=generator("d", r), dtype=torch.float64), dim=2
        )
        on = ((points @ nets.get_parameter("weight")[r].T).abs() > 0.5).flatten(0, 1).any(0)
        assert set(on.nonzero()[:, 0].tolist()) <= set(net.index.tolist())
        assert len(net.index) < 12


class AnyUnitVector(Cap):
    """A set that does not state that it lies within its radius."""

    def contains(self, point, center):
        return (point.norm(dim=1) - 1).abs() < 1e-6


@pytest.mark.parametrize(("kind", "all_kept"), [(AnyUnitVector, True), (Cap, False)])
def test_neurons_are_left_out_only_where_the_set_states_its_reach(kind, all_kept):
    x = torch.nn.functional.normalize(data()[0].flatten(0, 1), dim=1)
    loss = SymmetricLoss.around(stack(), data()[1].flatten(), logistic, x, kind(radius=0.2))
    assert ([len(net.weight) for net in loss.nets] == [12] * R) == all_kept
    plain = ModelLoss(stack(), data()[1].flatten(), logistic)
    torch.testing.assert_close(loss(x), plain(x))


@pytest.mark.parametrize("batch", [None, 10])
def test_whole_runs_agree(batch):
    """Both engines through the loop: growing bias, warm-up, penalty, cap, mini-batches."""
    ends = []
    for objective in (SymmetricAdversarial, Adversarial):
        nets, (x, y) = stack(), data()
        fitted = fit(
            nets, x, y, steps=25, lr=0.3, batch=batch,
            objective=objective(
                loss="logistic", ball=Ball(norm="l2", radius=0.3), warmup=10,
                attack=PGD(steps=3, step_size=1.0, random_start=False),
            ),
            hooks=[ModelSchedule(BiasGrowth(start=0.2, slope=0.02, end=0.5)),
                   Penalize(L2L3(weight=0.01)), Project(NeuronCap(radius=1.5))],
            rng=generators("run", seeds=range(R)),
        )  # fmt: skip
        ends.append((fitted.log.losses(), nets.get_parameter("weight").detach()))
    torch.testing.assert_close(ends[0], ends[1], rtol=1e-8, atol=1e-10)


def test_sampled_noise_has_the_gradient_of_the_smooth_network_on_average():
    nets = stack(sigma=0.2)
    ball = Ball(norm="l2", radius=0.0)
    x, y = data()
    rows = (x[:, :1].repeat(1, 100_000, 1).flatten(0, 1), y[:, :1].repeat(1, 100_000).flatten())
    loss = SymmetricLoss.around(nets, rows[1], _linear, rows[0], ball)
    _, noisy = loss.weight_gradient(rows[0], generators("rho", seeds=range(R)))
    _, smooth = loss.weight_gradient(rows[0])
    # One gate of one example varies by at most 1, and the input by |x_j|.
    slack = 6 * x[:, :1].abs() / 100_000**0.5
    assert ((noisy - smooth).abs() <= slack).all()


def _linear(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return -y * outputs


def test_one_network_is_a_stack_of_one_and_other_networks_are_refused():
    x, y = data()
    net = stack().replicate(0)
    loss = SymmetricLoss.around(net, y[0], logistic, x[0], Ball(norm="l2", radius=0.1))
    torch.testing.assert_close(loss(x[0]), ModelLoss(net, y[0], logistic)(x[0]))
    other = TwoLayer.draw(D, 4, "relu", generator("t"), omega=1.0)
    with pytest.raises(AdvlabError, match="SymmetricReLU"):
        SymmetricLoss.around(other, y[0], logistic, x[0], Ball(norm="l2", radius=0.1))
