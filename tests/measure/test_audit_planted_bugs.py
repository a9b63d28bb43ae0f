"""The audit finds every planted bug, projected or not, in both floating types, and no other."""

import copy
from functools import partial

import pytest
import torch
from torch import nn

from advlab.attacks import PGD
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, cross_entropy
from advlab.measure.audit import Audit, Recorder
from advlab.models import TwoLayer
from advlab.papers.convergence.models import DeepReLU
from advlab.threats import Ball, Cap
from advlab.training import (
    L2,
    Adversarial,
    LayerBalls,
    Penalize,
    Project,
    WholeBall,
    fit,
)

R = LayerBalls(radius=1.0, width=64)
SETTING = {"loss": "pseudo_huber", "ball": Cap(radius=0.2), "attack": PGD(steps=3)}


def two_layer():
    return TwoLayer.draw(4, 128, "sin_cos", torch.Generator().manual_seed(3), init="paired")


def deep():
    return DeepReLU.draw(4, 64, 2, torch.Generator().manual_seed(3))


def audited(draw, dtype, lr, *, projection=None, hooks=(), steps=25, **changes):
    """The report on a run that may differ from what the audit was told."""
    rng = torch.Generator().manual_seed(7)
    x = torch.randn(8, 4, generator=rng, dtype=torch.float64).to(dtype)
    x /= x.norm(dim=1, keepdim=True)
    y = torch.tensor([1.0, -1] * 4, dtype=dtype)
    model, goal = draw().to(dtype), draw().to(dtype)
    kept = [] if projection is None else [Project(projection)]
    fit(goal, x, y, steps=20, lr=lr, hooks=kept, **SETTING)
    audit = Audit(goal, projection=projection)
    setting = {} if "objective" in changes else SETTING
    fit(model, x, y, steps=steps, lr=lr, hooks=[audit, *hooks], **setting | changes)
    return audit.report()


class Scaled(torch.optim.SGD):
    """Steps that are `factor` times too long."""

    def __init__(self, params, lr, factor=1.02):
        super().__init__(params, lr=lr)
        self.factor = factor

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for w in group["params"]:
                w.add_(w.grad, alpha=-group["lr"] * self.factor)


class Wrong(Adversarial):
    """Gradients that are too long, forget an example, or are noisy."""

    how: str

    def value_and_grad(self, context, weights):
        if self.how == "forgets":
            each = self.per_example(context)
            grads = torch.autograd.grad(each[:-1].sum() / len(each), weights)
            return context.per_replicate(each).detach(), grads
        values, grads = super().value_and_grad(context, weights)
        if self.how == "long":
            return values, [1.02 * grad for grad in grads]
        return values, [grad + 1e-4 * torch.randn_like(grad) for grad in grads]


class OtherRadius(LayerBalls):
    factor: float

    def factors(self, moves):
        return [torch.where(f < 1, f * self.factor, f) for f in super().factors(moves)]


class FirstLayer(LayerBalls):
    def factors(self, moves):
        first, *others = super().factors(moves)
        return [first, *(torch.ones_like(f) for f in others)]


def wrong(how):
    return Wrong(how=how, **SETTING)


GOOD = [Project(R)]
UPDATES = {
    "step x1.02": {"optimizer": Scaled, "hooks": GOOD},
    "step x1.5": {"optimizer": partial(Scaled, factor=1.5), "hooks": GOOD},
    "step x0.98": {"optimizer": partial(Scaled, factor=0.98), "hooks": GOOD},
    "momentum 0.5": {"optimizer": partial(torch.optim.SGD, momentum=0.5), "hooks": GOOD},
    "momentum 0.9": {"optimizer": partial(torch.optim.SGD, momentum=0.9), "hooks": GOOD},
    "a penalty": {"hooks": [Penalize(L2(weight=0.1)), *GOOD]},
    "radius +3 %": {"hooks": [Project(OtherRadius(radius=1.0, width=64, factor=1.03))]},
    "radius -3 %": {"hooks": [Project(OtherRadius(radius=1.0, width=64, factor=0.97))]},
    "one layer unprojected": {"hooks": [Project(FirstLayer(radius=1.0, width=64))]},
    "no projection": {},
    "one ball for all": {"hooks": [Project(WholeBall(radius=1 / 8))]},
}
GRADIENTS = {how: {"objective": wrong(how), "hooks": GOOD} for how in ("long", "forgets", "noisy")}
DTYPES = [torch.float64, torch.float32]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bug", UPDATES)
def test_a_planted_update_is_found_in_a_projected_run(bug, dtype):
    report = audited(deep, dtype, 0.6 / 128, projection=R, **UPDATES[bug])
    assert any("projected on LayerBalls" in one.law for one in report.violations), report


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bug", GRADIENTS)
def test_a_planted_gradient_is_found_in_a_projected_run(bug, dtype):
    report = audited(deep, dtype, 0.6 / 128, projection=R, steps=4, **GRADIENTS[bug])
    laws = {one.law for one in report.violations if one.step == 0}
    assert "the gradient of the loss at the attacked inputs" in laws


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_right_run_that_projects_has_no_violation(dtype):
    report = audited(deep, dtype, 0.6 / 128, projection=R, hooks=GOOD)
    assert report.ok, report
    assert float(report.terms.projection.max()) > 1e-6
    # What rounding does is far from what is a violation.
    assert float(report.terms.update_error.max()) < 0.2


@pytest.mark.parametrize("lr", [0.3, 0.003])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_planted_bugs_are_found_at_small_rates_too(dtype, lr):
    assert audited(two_layer, dtype, lr, steps=5).ok
    for bug in (
        {"optimizer": Scaled},
        {"objective": wrong("forgets")},
        {"objective": wrong("long")},
    ):
        assert not audited(two_layer, dtype, lr, steps=5, **bug).ok


def mlp(*middle, outputs=1):
    torch.manual_seed(0)
    layers = [nn.Linear(5, 30), *(make() for make in middle), nn.Tanh(), nn.Linear(30, outputs)]
    return nn.Sequential(*layers).double()


def tied():
    torch.manual_seed(0)
    shared = nn.Linear(5, 5)
    return nn.Sequential(shared, nn.Tanh(), shared, nn.Tanh(), nn.Linear(5, 1)).double()


def tied_arrays():
    """Two layers with one weight and biases of their own."""
    model = mlp()
    inner = nn.Linear(5, 5).double()
    model = nn.Sequential(inner, nn.Tanh(), nn.Linear(5, 5).double(), *model)
    model[2].weight = inner.weight
    return model


NORM, DROP = partial(nn.BatchNorm1d, 30), partial(nn.Dropout, 0.2)
NETWORKS = {
    "plain": mlp,
    "BatchNorm": partial(mlp, NORM),
    "BatchNorm without momentum": partial(mlp, partial(nn.BatchNorm1d, 30, momentum=None)),
    "Dropout": partial(mlp, DROP),
    "LayerNorm": partial(mlp, partial(nn.LayerNorm, 30)),
    "both": partial(mlp, NORM, DROP),
    "a layer twice": tied,
    "tied weights": tied_arrays,
    "three outputs": partial(mlp, NORM, outputs=3),
}


def rows(outputs):
    torch.manual_seed(1)
    x = torch.randn(20, 5, dtype=torch.float64)
    return x, x[:, :3].argmax(1) if outputs == 3 else x[:, 0].sign()


def observed(draw, scale=1.0, **hooks):
    """An audited run of a network of the user's, its last outputs, and the run without audit."""
    model, plain = draw(), draw()
    outputs = model[-1].out_features
    x, y = rows(outputs)
    setting = {"lr": 0.1, "loss": "cross_entropy" if outputs > 1 else "logistic", "batch": 10,
               "ball": Ball(norm="linf", radius=0.1), "attack": PGD(steps=2), "rng": 0}  # fmt: skip
    goal = copy.deepcopy(model)
    fit(goal, x, y, steps=30, **setting)
    audit = Audit(goal, **hooks.pop("declared", {}))
    torch.manual_seed(2)
    fit(model, x, y, steps=10, hooks=[audit], **setting, **hooks)
    torch.manual_seed(2)
    fit(plain, x, y, steps=10, **setting, **hooks)
    return audit.report(), model, plain


@pytest.mark.parametrize("name", NETWORKS)
def test_correct_runs_of_all_kinds_of_networks_have_no_violation(name):
    report, model, plain = observed(NETWORKS[name])
    assert report.ok, report
    assert float(report.loss) <= float(report.bound)
    # Watching changes nothing: weights, statistics and random numbers are those of the plain run.
    for key, value in model.state_dict().items():
        assert torch.equal(value, plain.state_dict()[key]), key
    assert not model._forward_pre_hooks


@pytest.mark.parametrize("name", NETWORKS)
def test_a_long_step_is_found_in_all_kinds_of_networks(name):
    report, *_ = observed(NETWORKS[name], optimizer=Scaled)
    assert "plain gradient descent" in report.violations[0].law
    assert report.violations[0].step == 0


@pytest.mark.parametrize(
    "optimizer",
    [
        partial(torch.optim.SGD, momentum=0.9, nesterov=True, weight_decay=0.01),
        partial(torch.optim.Adam, eps=1e-4),
        torch.optim.AdamW,
    ],
    ids=["nesterov", "adam", "adamw"],
)
def test_a_declared_optimizer_is_replayed_and_another_is_found(optimizer):
    report, *_ = observed(mlp, optimizer=optimizer, declared={"optimizer": optimizer})
    assert report.ok, report
    assert "update" in report.parts
    assert float(report.loss) <= float(report.bound)
    other, *_ = observed(mlp, optimizer=optimizer, declared={"optimizer": torch.optim.Adagrad})
    assert "the declared Adagrad" in other.violations[0].law


def by_hand(factor=1.0, dtype=torch.float64, late=False):
    """A loop of one's own, whose steps are `factor` times too long, with a recorder."""
    model = mlp(NORM, DROP, outputs=3).to(dtype)
    x, y = rows(3)
    x = x.to(dtype)
    goal = copy.deepcopy(model)
    fit(goal, x, y, steps=30, lr=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * factor)
    recorder = Recorder(model, goal, loss="cross_entropy")
    ball = Ball(norm="linf", radius=0.1)
    for step in range(8):
        batch = torch.arange(10) + 10 * (step % 2)
        lost = ModelLoss(model, y[batch], cross_entropy)
        moved = PGD(steps=2)(lost, x[batch], ball, rng=generator("hand", step)).x
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(moved), y[batch])
        loss.backward()
        recorder.step(x[batch] if late else moved, y[batch], lr=0.1, value=loss)
        optimizer.step()
    return recorder.report(), model


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_loop_of_one_s_own_is_audited_by_a_recorder(dtype):
    report, model = by_hand(dtype=dtype)
    assert report.ok, report
    assert report.table().height == 8
    assert not model._forward_pre_hooks
    assert "plain gradient descent" in by_hand(1.02, dtype)[0].violations[0].law
    # Inputs that are not those whose loss was descended.
    assert "identity" in by_hand(late=True)[0].violations[0].law


def test_a_recorder_of_a_loop_that_projects():
    model = two_layer()
    start = model.weight.detach().clone()
    x = torch.eye(4, dtype=torch.float64)
    y = torch.tensor([1.0, -1, 1, -1], dtype=torch.float64)
    ball = WholeBall(radius=0.5)
    for broken in (False, True):
        with torch.no_grad():
            model.weight.copy_(start)
        recorder = Recorder(model, copy.deepcopy(model), loss="squared", projection=ball)
        for _ in range(10):
            model.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            recorder.step(x, y, lr=0.3)
            with torch.no_grad():
                model.weight -= 0.3 * model.weight.grad
                move = model.weight - start
                if not broken and move.norm() > 0.5:
                    model.weight.copy_(start + move * 0.5 / move.norm())
        assert recorder.report().ok != broken
