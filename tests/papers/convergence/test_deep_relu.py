"""The deep network against the formulas of the convergence paper, and its scales at the start."""

import math

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.models import Stack
from advlab.papers.convergence.models import DeepReLU
from advlab.threats import Cap
from advlab.training import LayerBalls, Project, fit


def on_sphere(n: int, d: int, name: str) -> torch.Tensor:
    x = torch.randn(n, d, generator=generator(name), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_layer_gradients_are_the_paper_s(depth):
    """grad_{W_h} f = (D_h W_{h+1}' D_{h+1} ... W_H' D_H a) x_{h-1}' (section A)."""
    net = DeepReLU.draw(4, 9, depth, generator("gradients", depth))
    x = on_sphere(1, 4, "gradients")
    grads = torch.autograd.grad(net(x)[0], list(net.hidden))
    before, masks = [net.bottom @ x[0]], []
    for weight in net.hidden:
        pre = weight.detach() @ before[-1]
        masks.append(torch.diag((pre >= 0).double()))
        before.append(pre.clamp(min=0))
    for h in range(depth):
        back = net.top
        for later in range(depth - 1, h, -1):
            back = net.hidden[later].detach().T @ masks[later] @ back
        torch.testing.assert_close(grads[h], torch.outer(masks[h] @ back, before[h]))
    torch.testing.assert_close(net(x)[0].detach(), net.top @ before[-1])
    for pre, mask in zip(net.preactivations(x), masks, strict=True):
        assert torch.equal((pre[0] >= 0).double(), mask.diagonal())


def scales(input_var: float) -> dict[str, list[float]]:
    """Norms at width 1500 and depth 3, the extremes over four points."""
    width = 1500
    net = DeepReLU.draw(6, width, 3, generator("scales"), input_var=input_var)
    x = on_sphere(4, 6, "scales")
    pre = net.preactivations(x)
    found = {
        "x_0": (x @ net.bottom.T).norm(dim=1),
        "pre": torch.cat([one.norm(dim=1) for one in pre]).detach(),
        "x_h": torch.cat([one.relu().norm(dim=1) for one in pre]).detach(),
        "a": net.top.norm() / math.sqrt(width),
    }
    return {name: [float(value.min()), float(value.max())] for name, value in found.items()}


def test_norms_at_the_start_are_sqrt_2_and_2_not_those_of_lemma_a2():
    found = scales(2.0)
    for name, expected in {"x_0": math.sqrt(2), "pre": 2, "x_h": math.sqrt(2), "a": 1}.items():
        assert found[name] == pytest.approx([expected] * 2, rel=0.1), name
    assert found["pre"][0] > 4 / 3  # outside [2/3, 4/3]
    unit = scales(1.0)
    for name, expected in {"x_0": 1, "pre": math.sqrt(2), "x_h": 1, "a": 1}.items():
        assert unit[name] == pytest.approx([expected] * 2, rel=0.1), name


def test_spectral_and_gradient_norms_at_the_start_do_not_grow_with_width():
    """||W_h||_2 near 2 sqrt(2), ||A||_2 near sqrt(2) and ||grad_{W_h} f||_F near sqrt(m)."""
    width = 800
    net = DeepReLU.draw(5, width, 2, generator("spectral"))
    assert float(torch.linalg.matrix_norm(net.bottom, 2)) == pytest.approx(math.sqrt(2), rel=0.2)
    for weight in net.hidden:
        norm = float(torch.linalg.matrix_norm(weight, 2).detach())
        assert norm == pytest.approx(2 * math.sqrt(2), rel=0.1)
    for grad in torch.autograd.grad(net(on_sphere(1, 5, "one"))[0], list(net.hidden)):
        assert float(grad.norm()) / math.sqrt(width) == pytest.approx(1, rel=0.25)


def test_only_the_hidden_layers_train_and_each_stays_in_its_ball():
    seeds, width, limit = range(3), 16, 0.5
    stack = Stack.draw(lambda rng: DeepReLU.draw(4, width, 2, rng), generators("n", seeds=seeds))
    start = {name: value.clone() for name, value in stack.state_dict().items()}
    x = torch.stack([on_sphere(5, 4, f"data {seed}") for seed in seeds])
    y = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0], dtype=torch.float64).expand(3, 5)
    fit(
        stack,
        x,
        y,
        steps=20,
        lr=0.05,
        loss="pseudo_huber",
        ball=Cap(radius=0.1),
        hooks=[Project(LayerBalls(radius=limit, width=width))],
        rng=generators("attack", seeds=seeds),
    )
    moves = {name: value - start[name] for name, value in stack.state_dict().items()}
    assert not moves.pop("bottom").any()
    assert not moves.pop("top").any()
    assert len(moves) == 2
    for move in moves.values():
        lengths = move.flatten(1).norm(dim=1)
        torch.testing.assert_close(lengths, torch.full_like(lengths, limit / math.sqrt(width)))


def test_a_replicate_alone_is_the_replicate_of_the_stack():
    nets = [DeepReLU.draw(4, 6, 3, rng) for rng in generators("alone", seeds=range(3))]
    x = torch.stack([on_sphere(5, 4, f"alone {r}") for r in range(3)])
    together = Stack(nets)(x.flatten(0, 1)).reshape(3, 5)
    for r in range(3):
        torch.testing.assert_close(nets[r](x[r]), together[r])
        torch.testing.assert_close(Stack(nets).replicate(r)(x[r]), together[r])


def test_the_type_of_numbers_is_the_one_asked_for():
    net = DeepReLU.draw(4, 6, 2, generator("single"), dtype=torch.float32)
    assert {value.dtype for value in net.state_dict().values()} == {torch.float32}


@pytest.mark.parametrize(("d", "width", "depth"), [(0, 5, 1), (3, 0, 1), (3, 5, 0)])
def test_empty_networks_are_refused(d, width, depth):
    with pytest.raises(AdvlabError, match=f"d {d}, width {width}, depth {depth}"):
        DeepReLU.draw(d, width, depth, generator("x"))


@pytest.mark.parametrize("input_var", [0.0, -1.0, math.inf, math.nan])
def test_a_variance_must_be_positive(input_var):
    with pytest.raises(AdvlabError, match="variance"):
        DeepReLU.draw(3, 5, 1, generator("x"), input_var=input_var)


def test_a_radius_of_weights_must_be_positive():
    for radius in (0.0, -1.0):
        with pytest.raises(AdvlabError, match="radius"):
            LayerBalls(radius=radius, width=5)
