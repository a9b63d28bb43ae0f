"""Each recipe's value and gradient against the paper's formula in plain PyTorch."""

import copy
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from advlab.attacks import PGD
from advlab.core.errors import AdvlabError
from advlab.models import Stack
from advlab.threats import Ball
from advlab.training import (
    AWP,
    TRADES,
    Adversarial,
    CatastrophicOverfitting,
    Clean,
    Free,
    Objective,
    SmoothAdversarial,
    SurrogateAdversarial,
    fit,
    recipe,
)

LINF = Ball("linf", 0.2)
L2 = Ball("l2", 0.4)


def network(seed: int = 0, norm: bool = False) -> nn.Sequential:
    torch.manual_seed(seed)
    middle = [nn.BatchNorm1d(7)] if norm else []
    return nn.Sequential(nn.Linear(4, 7), *middle, nn.Tanh(), nn.Linear(7, 3)).double()


def rows(n: int = 9, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=rng, dtype=torch.float64)
    return x, torch.randint(0, 3, (n,), generator=rng)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def ours(objective: Objective, net, x, y, lr=0.1):
    """Value and gradient in a step, as the loop asks for them."""
    context = objective.context(net, x, y, seeded(), lr=lr)
    return objective.value_and_grad(context, list(net.parameters()))


def gradients(value: torch.Tensor, net) -> list[torch.Tensor]:
    return list(torch.autograd.grad(value, list(net.parameters())))


def agree(found, value, net) -> None:
    values, grads = found
    torch.testing.assert_close(values, value.detach()[None], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(list(grads), gradients(value, net), rtol=1e-8, atol=1e-12)


def ascent(loss, x, start, eps, alpha, steps):
    """Signed steps, clipped to the cube around x."""
    point = start
    for _ in range(steps):
        leaf = point.clone().requires_grad_()
        (grad,) = torch.autograd.grad(loss(leaf), leaf)
        point = torch.min(torch.max(leaf.detach() + alpha * grad.sign(), x - eps), x + eps)
    return point


def objective_of(name: str, ball=LINF, **settings) -> Objective:
    return recipe(name, **settings).stages(ball, 10)[-1].objective


def start_of(x) -> torch.Tensor:
    return LINF.sample(x, rng=seeded())


def test_clean():
    net, (x, y) = network(), rows()
    agree(ours(objective_of("clean"), net, x, y), F.cross_entropy(net(x), y), net)
    smooth = F.cross_entropy(net(x), y, label_smoothing=0.2)
    agree(ours(objective_of("clean", label_smoothing=0.2), net, x, y), smooth, net)


@pytest.mark.parametrize(
    ("name", "alpha", "steps"),
    [("pgd", 0.25, 7), ("fast", 1.25, 1), ("clean_then_adversarial", 0.25, 7), ("stages", 0.25, 7)],
)
def test_adversarial_training_by_signed_steps(name, alpha, steps):
    net, (x, y) = network(), rows()
    point = ascent(
        lambda z: F.cross_entropy(net(z), y, reduction="sum"),
        x,
        start_of(x),
        0.2,
        alpha * 0.2,
        steps,
    )
    agree(ours(objective_of(name), net, x, y), F.cross_entropy(net(point), y), net)


def test_mixed():
    net, (x, y) = network(), rows()
    point = ascent(
        lambda z: F.cross_entropy(net(z), y, reduction="sum"), x, start_of(x), 0.2, 0.05, 7
    )
    value = 0.7 * F.cross_entropy(net(x), y) + 0.3 * F.cross_entropy(net(point), y)
    agree(ours(objective_of("mixed", lam=0.3), net, x, y), value, net)


def trades_value(net, x, y, beta=6.0):
    fixed = F.softmax(net(x), 1).detach()
    point = ascent(
        lambda z: F.kl_div(F.log_softmax(net(z), 1), fixed, reduction="sum"),
        x,
        start_of(x),
        0.2,
        0.05,
        10,
    )
    return lambda model: (
        F.cross_entropy(model(x), y)
        + beta
        * F.kl_div(F.log_softmax(model(point), 1), F.softmax(model(x), 1), reduction="batchmean")
    )


def test_trades():
    net, (x, y) = network(), rows()
    agree(ours(objective_of("trades"), net, x, y), trades_value(net, x, y)(net), net)


def test_mart():
    net, (x, y) = network(), rows()
    point = ascent(
        lambda z: F.cross_entropy(net(z), y, reduction="sum"), x, start_of(x), 0.2, 0.05, 10
    )
    p, q = F.softmax(net(x), 1), F.softmax(net(point), 1)
    mine = F.one_hot(y, 3).bool()
    boosted = -q[mine].log() - (1 - q.masked_fill(mine, 0.0).amax(1)).log()
    divergence = (p * (p / q).log()).sum(1)
    value = (boosted + 5.0 * divergence * (1 - p[mine])).mean()
    agree(ours(objective_of("mart"), net, x, y), value, net)


@pytest.mark.parametrize("all_draws", [True, False])
def test_smoothadv_trains_on_the_noise_that_the_attack_saw(all_draws):
    net, (x, y) = network(), rows()
    rng = seeded()
    noise = [0.25 * torch.empty_like(x).normal_(generator=rng) for _ in range(2)]

    def smoothed(z):
        return -sum(F.softmax(net(z + d), 1) / 2 for d in noise).gather(1, y[:, None])[:, 0].log()

    point, best, worst = x, x, smoothed(x).detach()
    for _ in range(4):
        leaf = point.clone().requires_grad_()
        (grad,) = torch.autograd.grad(smoothed(leaf).sum(), leaf)
        move = leaf.detach() + 0.2 * grad / grad.norm(dim=1, keepdim=True) - x
        point = x + move * (0.4 / move.norm(dim=1, keepdim=True)).clamp(max=1.0)
        value = smoothed(point).detach()
        better = value > worst
        best, worst = torch.where(better[:, None], point, best), torch.maximum(value, worst)
    used = noise if all_draws else noise[:1]
    value = sum(F.cross_entropy(net(best + d), y) for d in used) / len(used)
    objective = objective_of("smoothadv", L2, radius_warmup=0.0, all_draws=all_draws)
    agree(ours(objective, net, x, y), value, net)


@pytest.mark.parametrize("gradient", ["per_example", "batch_mean"])
@pytest.mark.parametrize("lr", [0.1, 0.01])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_surrogate_attack_with_xi_that_follows_the_rate(gradient, lr, norm):
    net, (x, y) = network(), rows()
    leaf = x.clone().requires_grad_()
    loss = F.cross_entropy(net(leaf), y, reduction="mean" if gradient == "batch_mean" else "sum")
    (g,) = torch.autograd.grad(loss, leaf)
    xi = 0.05 * lr / 0.1
    if norm == "l2":
        move = 0.05 * g / (g.norm(dim=1, keepdim=True) ** 2 + xi**2).sqrt()
    else:
        move = 0.05 * g / (g.abs() + xi)
    assert (
        F.cross_entropy(net(x + move), y, reduction="none")
        >= F.cross_entropy(net(x), y, reduction="none")
    ).all()
    objective = objective_of("surrogate", Ball(norm, 0.05), xi=0.05, gradient=gradient)
    agree(ours(objective, net, x, y, lr=lr), F.cross_entropy(net(x + move), y), net)


def test_free_replays_carry_the_perturbation_over_replays_and_batches():
    """Six steps of SGD: a batch of six three times, then a smaller one three times."""
    net, by_hand = network(), network()
    batches = [rows(6, 1), rows(4, 2)]
    objective = objective_of("free", m=3)
    assert objective.replays == 3
    delta = torch.zeros(6, 4, dtype=torch.float64)
    step = 0
    for x, y in batches:
        for _ in range(3):
            context = objective.context(net, x, y, seeded(), step=step, lr=0.1)
            values, grads = objective.value_and_grad(context, list(net.parameters()))
            n = len(x)
            leaf = (x + delta[:n]).requires_grad_()
            loss = F.cross_entropy(by_hand(leaf), y)
            loss.backward()
            torch.testing.assert_close(values, loss.detach()[None], rtol=1e-10, atol=0)
            delta[:n] = (delta[:n] + 0.2 * leaf.grad.sign()).clamp(-0.2, 0.2)
            with torch.no_grad():
                for w, grad in zip(net.parameters(), grads, strict=True):
                    w -= 0.1 * grad
                for w in by_hand.parameters():
                    w -= 0.1 * w.grad
                    w.grad = None
            step += 1
    for w, v in zip(net.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(w, v, rtol=1e-9, atol=1e-12)


def test_free_points_never_leave_ball_and_box_of_a_new_batch():
    ball = Ball("linf", 0.3, box=(0.0, 1.0))
    objective, net = Free(ball=ball, m=2), network()
    for step in range(8):
        x = rows(5, 10 + step)[0].sigmoid()
        context = objective.context(net, x, rows(5)[1], seeded(), step=step)
        seen = []
        handle = net.register_forward_pre_hook(lambda _, given, seen=seen: seen.append(given[0]))
        objective.value_and_grad(context, list(net.parameters()))
        handle.remove()
        assert len(seen) == 1
        assert ball.contains(seen[0].detach(), x).all()
        if step:
            assert float((seen[0].detach() - x).abs().max()) > 0.2


def awp_by_hand(net, value_of, gamma):
    """The gradient at w + v, on a copy of the network."""
    proxy = copy.deepcopy(net)
    uphill = gradients(value_of(proxy), proxy)
    moved = copy.deepcopy(net)
    with torch.no_grad():
        for w, g in zip(moved.parameters(), uphill, strict=True):
            if w.ndim > 1:
                w += gamma * w.norm() * g / g.norm()
    value = value_of(moved)
    return value.detach(), gradients(value, moved), moved


@pytest.mark.parametrize("gamma", [0.005, 0.1])
def test_awp_is_the_gradient_at_the_perturbed_weights_and_leaves_the_weights_alone(gamma):
    net, (x, y) = network(), rows()
    value, grads, _ = awp_by_hand(net, trades_value(net, x, y), gamma)
    before = copy.deepcopy(net.state_dict())
    objective = objective_of("trades", awp=gamma)
    assert isinstance(objective, AWP)
    values, found = ours(objective, net, x, y)
    torch.testing.assert_close(values, value[None], rtol=1e-10, atol=0)
    torch.testing.assert_close(list(found), grads, rtol=1e-8, atol=1e-12)
    assert all(torch.equal(before[name], now) for name, now in net.state_dict().items())
    plain = ours(objective_of("trades"), net, x, y)[1]
    assert max(float((a - b).abs().max()) for a, b in zip(found, plain, strict=True)) > 1e-4


def test_statistics_see_the_perturbed_pass_once():
    net, (x, y) = network(norm=True), rows()
    net.train()
    _, _, moved = awp_by_hand(net, lambda model: F.cross_entropy(model(x), y), 0.05)
    ours(AWP(objective=Clean(), gamma=0.05), net, x, y)
    for name, value in moved.named_buffers():
        torch.testing.assert_close(dict(net.named_buffers())[name], value, rtol=1e-10, atol=0)
    assert int(net[1].num_batches_tracked) == 1


def test_awp_waits_for_its_warm_up_and_restores_after_an_error():
    net, (x, y) = network(), rows()
    waiting = AWP(objective=Clean(), gamma=0.5, warmup=1)
    agree(ours(waiting, net, x, y), F.cross_entropy(net(x), y), net)
    before = copy.deepcopy(net.state_dict())
    calls = []

    def fails_later(outputs, labels):
        calls.append(1)
        if len(calls) > 1:
            raise KeyError("later")
        return F.cross_entropy(outputs, labels, reduction="none")

    with pytest.raises(KeyError):
        ours(AWP(objective=Clean(loss=fails_later), gamma=0.5), net, x, y)
    assert all(torch.equal(before[name], now) for name, now in net.state_dict().items())


def test_free_with_awp_moves_the_perturbation_once_per_step():
    x, y = rows()
    with_awp = AWP(objective=Free(ball=LINF, m=2), gamma=0.05)
    assert with_awp.replays == 2
    assert len(with_awp.companions()) == 1
    net = network()
    ours(with_awp, net, x, y)
    kept = with_awp.objective._kept.delta
    value = partial(lambda model: F.cross_entropy(model(x), y))
    _, _, moved = awp_by_hand(net, value, 0.05)
    leaf = x.clone().requires_grad_()
    (grad,) = torch.autograd.grad(F.cross_entropy(moved(leaf), y), leaf)
    torch.testing.assert_close(kept[0], 0.2 * grad.sign(), rtol=0, atol=1e-12)


def test_a_wrong_loss_is_refused_in_one_line():
    net, (x, y) = network(), rows()
    with pytest.raises(AdvlabError, match="one value per example"):
        ours(Free(ball=LINF, loss=F.cross_entropy), net, x, y)
    trades = TRADES(ball=LINF)
    assert AWP(objective=trades).loss == trades.loss
    assert AWP(objective=Adversarial(ball=LINF, loss="logistic")).loss == "logistic"
    with pytest.raises(AdvlabError, match="the loss in the objective"):
        AWP(objective=trades, loss="logistic")


@pytest.mark.parametrize(
    "objective",
    [
        AWP(objective=TRADES(ball=LINF), gamma=0.05),
        Free(ball=LINF, m=2),
        SmoothAdversarial(ball=L2),
        SurrogateAdversarial(ball=L2, xi=0.1, lr=0.1, gradient="batch_mean"),
    ],
    ids=lambda objective: type(objective).__name__,
)
def test_replicates_of_a_stack_train_as_each_would_alone(objective):
    x, y = (torch.stack(parts) for parts in zip(*(rows(9, seed) for seed in (1, 2)), strict=True))

    def trained(model, x, y, seeds):
        rngs = [torch.Generator().manual_seed(seed) for seed in seeds]
        watch = CatastrophicOverfitting(2, one_step=PGD(steps=1))
        hooks = [*objective.companions(), watch]
        alone = len(seeds) == 1
        rng = rngs[0] if alone else rngs
        run = fit(model, x, y, steps=4, lr=0.1, batch=4, objective=objective, hooks=hooks, rng=rng)
        return run.log.losses(), run.log.probe("pgd_accuracy")

    together = trained(Stack([network(3), network(4)]), x, y, (7, 8))
    for r in range(2):
        alone = trained(network(3 + r), x[r], y[r], (7 + r,))
        for ours, theirs in zip(alone, together, strict=True):
            torch.testing.assert_close(ours[:, 0], theirs[:, r], rtol=1e-12, atol=1e-13)
