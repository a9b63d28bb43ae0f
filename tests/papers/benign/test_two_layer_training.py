"""Two-layer networks by products against the plain way: autograd, PGD, all dimensions."""

import pytest
import torch
from scipy.stats import special_ortho_group
from turns import in_turn

from advlab.attacks import FGM, PGD
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.losses import ModelLoss, logistic, resolve
from advlab.models import Linear, Stack, TwoLayer
from advlab.models.activations import SHAPES
from advlab.papers.benign.data import NoisyMixture
from advlab.papers.benign.reductions import TwoLayerAdversarial, attacked
from advlab.papers.benign.reductions.input_pgd import few_inputs
from advlab.reductions import Layers, Subspace
from advlab.threats import Ball
from advlab.training import L2, Adversarial, Checkpoint, Hook, Penalize, fit

BALL = Ball(norm="l2", radius=1.0)
ATTACK = PGD(steps=20, step_size=0.2, random_start=False, jump=False)
NETS = {
    "symmetric": {"init": "symmetric", "omega": 0.05},
    "symmetric, biases, top": {"init": "symmetric", "omega": 0.05, "bias": True, "train_top": True},
    "torch": {"init": "torch", "bias": True, "train_top": True},
    "torch, fixed top": {"init": "torch"},
}

AGAINST = {"loss": "logistic", "ball": BALL, "attack": ATTACK}


def _problem(activation, settings, d=60, n=8, width=10, replicates=2):
    rngs = generators("two-layer tests", seeds=range(replicates))
    data = NoisyMixture(n=n, d=d, mu_norm=3.0, beta=0.2, flips="count").sample_stack(rngs)
    stack = Stack.draw(lambda rng: TwoLayer.draw(d, width, activation, rng, **settings), rngs)
    return data.x, data.y, stack


def _reduced(stack, x, space):
    """The stack in the coordinates of a subspace; mirrored halves stay equal to the last bit."""
    weight = stack.get_parameter("weight").detach()
    if stack.skeleton.init == "symmetric":
        inside = space.into(weight[:, : weight.shape[1] // 2]).repeat(1, 2, 1)
    else:
        inside = space.into(weight)
    nets = []
    for r, w in enumerate(inside):
        net = stack.replicate(r)
        nets.append(
            TwoLayer(
                w, net.top, net.activation, net.bias, net.top_bias,
                init=net.init, train_top=net.top.requires_grad,
            )
        )  # fmt: skip
    return Stack(nets)


KINDS = [(activation, "symmetric, biases, top") for activation in SHAPES] + [
    ("relu", "symmetric"),
    ("smoothed_leaky_relu", "symmetric"),
    ("relu", "torch"),
    ("relu", "torch, fixed top"),
]


@pytest.mark.parametrize(("activation", "kind"), in_turn(KINDS, always=2))
def test_fifty_steps_in_the_subspace_are_those_of_the_whole_space(activation, kind):
    x, y, whole = _problem(activation, NETS[kind])
    space = Subspace.of(torch.cat([x, whole.get_parameter("weight").detach()], 1))
    assert space.basis.shape[2] < x.shape[2]
    small = _reduced(whole, x, space)
    common = {"steps": 50, "lr": 0.05}
    plain = fit(whole, x, y, objective=Adversarial(**AGAINST), **common)
    fast = fit(small, space.into(x), y, objective=TwoLayerAdversarial(**AGAINST), **common)
    torch.testing.assert_close(fast.log.losses(), plain.log.losses(), rtol=1e-10, atol=1e-12)
    assert (plain.log.losses()[-1] < plain.log.losses()[0]).all()
    for name, value in whole.state_dict().items():
        found = small.state_dict()[name]
        found = space.lift(found) if name == "weight" else found
        torch.testing.assert_close(found, value, rtol=1e-10, atol=1e-10)
    # A fresh point is seen through its projection.
    fresh = (
        NoisyMixture(n=20, d=60, mu_norm=3.0).sample_stack(generators("fresh", seeds=range(2))).x
    )
    seen = small(space.into(fresh).flatten(0, 1))
    torch.testing.assert_close(seen, whole(fresh.flatten(0, 1)), rtol=1e-10, atol=1e-10)


MANY, FEW = {"d": 60, "width": 10}, {"d": 6, "width": 40}
"""Coordinates of the inputs for products with the Gram matrix, and for products with the inputs."""


@pytest.mark.parametrize("size", [MANY, FEW], ids=["many coordinates", "few coordinates"])
@pytest.mark.parametrize("settings", NETS.values(), ids=NETS)
@pytest.mark.parametrize("loss", ["logistic", "squared", "margin"])
@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "smoothed_leaky_relu", "gelu"])
def test_attacked_points_are_those_of_pgd(activation, loss, settings, size):
    x, y, stack = _problem(activation, settings, **size)
    assert few_inputs(Layers.of(stack)) == (size is FEW)
    fit(stack, x, y, steps=5, lr=0.1, loss="logistic")
    ball = Ball(norm="l2", radius=2.0)
    rows, labels = x.flatten(0, 1), y.flatten()
    plain = ATTACK(ModelLoss(stack, labels, resolve(loss)), rows, ball, rng=generator("any"))
    fast = attacked(stack, rows, labels, ball, ATTACK, loss, rows=3)
    torch.testing.assert_close(fast.loss, plain.loss, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(fast.x, plain.x, rtol=1e-8, atol=1e-8)
    assert (fast.loss - resolve(loss)(stack(rows), labels)).max() > 0.01
    assert ball.contains(fast.x, rows).all()


@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_with_few_coordinates_training_is_that_of_autograd(activation, kind):
    x, y, first = _problem(activation, NETS[kind], **FEW)
    second = Stack([first.replicate(r) for r in range(2)])
    common = {"steps": 30, "lr": 0.05}
    plain = fit(first, x, y, objective=Adversarial(**AGAINST), **common)
    fast = fit(second, x, y, objective=TwoLayerAdversarial(**AGAINST), **common)
    torch.testing.assert_close(fast.log.losses(), plain.log.losses(), rtol=1e-10, atol=1e-12)
    for name, value in first.state_dict().items():
        torch.testing.assert_close(second.state_dict()[name], value, rtol=1e-9, atol=1e-10)


def test_one_network_gives_the_numbers_of_its_place_in_a_stack():
    x, y, stack = _problem("relu", NETS["torch"])
    alone = stack.replicate(1)
    common = {"steps": 20, "lr": 0.1}
    together = fit(stack, x, y, objective=TwoLayerAdversarial(**AGAINST), **common)
    single = fit(alone, x[1], y[1], objective=TwoLayerAdversarial(**AGAINST), **common)
    torch.testing.assert_close(single.log.losses()[:, 0], together.log.losses()[:, 1])


def test_a_mirrored_network_is_left_alone_at_first():
    x, y, stack = _problem("relu", NETS["symmetric"])
    seen = attacked(stack, x.flatten(0, 1), y.flatten(), BALL, ATTACK)
    assert torch.equal(seen.x, x.flatten(0, 1))
    assert torch.equal(seen.loss, logistic(torch.zeros(16).double(), y.flatten()))


@pytest.mark.parametrize(
    "more",
    [{"hooks": [Penalize(L2(weight=0.1))]}, {"optimizer": torch.optim.Adam}],
    ids=["penalty", "Adam"],
)
def test_weights_that_took_another_step_are_noticed(more):
    x, y, first = _problem("relu", NETS["torch"])
    second = Stack([first.replicate(r) for r in range(2)])
    common = dict(steps=30, lr=0.02, **more)
    plain = fit(first, x, y, objective=Adversarial(**AGAINST), **common)
    fast = fit(second, x, y, objective=TwoLayerAdversarial(**AGAINST), **common)
    torch.testing.assert_close(fast.log.losses(), plain.log.losses(), rtol=1e-9, atol=1e-12)


def test_mini_batches_are_noticed_too():
    x, y, stack = _problem("relu", NETS["torch"])
    nets = [stack.replicate(0), stack.replicate(0)]
    runs = [
        fit(net, x[0], y[0], steps=30, lr=0.02, batch=4, objective=kind(**AGAINST),
            rng=generator("batches"))
        for net, kind in zip(nets, [Adversarial, TwoLayerAdversarial], strict=True)
    ]  # fmt: skip
    torch.testing.assert_close(runs[1].log.losses(), runs[0].log.losses(), rtol=1e-9, atol=1e-12)


def test_a_run_continues_with_the_same_bits(tmp_path):
    x, y, stack = _problem("relu", NETS["torch"])

    class Killed(Exception):
        pass

    class Killer(Hook):
        def after_gradient(self, run, info):
            if run.step == self.at:
                raise Killed

    def run(at):
        model, killer = Stack([stack.replicate(r) for r in range(2)]), Killer()
        killer.at = at
        return fit(
            model, x, y, steps=120, lr=0.1, objective=TwoLayerAdversarial(**AGAINST),
            hooks=[killer, Checkpoint(tmp_path / "run.safetensors", every=50)],
        )  # fmt: skip

    whole = run(None)
    (tmp_path / "run.safetensors").unlink()
    with pytest.raises(Killed):
        run(73)
    assert torch.equal(run(None).log.losses(), whole.log.losses())


@pytest.mark.parametrize(
    ("ball", "attack", "words"),
    [
        (Ball(norm="linf", radius=1.0), ATTACK, "l2 ball"),
        (Ball(norm="l2", radius=1.0, box=(0.0, 1.0)), ATTACK, "without a box"),
        (BALL, PGD(), "random_start=False"),
        (BALL, FGM(), "PGD"),
    ],
)
def test_what_the_products_cannot_do_is_refused(ball, attack, words):
    x, y, stack = _problem("relu", NETS["torch"])
    with pytest.raises(AdvlabError, match=words):
        attacked(stack, x.flatten(0, 1), y.flatten(), ball, attack)


def test_other_networks_are_refused():
    with pytest.raises(AdvlabError, match="TwoLayer"):
        attacked(Linear.zero(3), torch.ones(2, 3), torch.ones(2), BALL, ATTACK)


def test_turning_the_coordinates_changes_nothing():
    x, y, stack = _problem("relu", NETS["torch"], d=12)
    turn = torch.from_numpy(special_ortho_group.rvs(12, random_state=1)).expand(2, -1, -1)
    other = _reduced(stack, x, Subspace(turn))
    common = {"steps": 30, "lr": 0.1}
    one = fit(stack, x, y, objective=TwoLayerAdversarial(**AGAINST), **common)
    two = fit(other, x @ turn, y, objective=TwoLayerAdversarial(**AGAINST), **common)
    torch.testing.assert_close(one.log.losses(), two.log.losses(), rtol=1e-9, atol=1e-12)
