"""The audit: true of honest runs of any network and attack, false of every dishonest one."""

import copy
import re
from functools import partial
from itertools import product

import pytest
import torch
from torch import nn
from turns import in_turn

from advlab.attacks import PGD, Anti, Random, Switch
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.measure.audit import Audit
from advlab.models import Stack, TwoLayer
from advlab.papers.convergence.models import DeepReLU
from advlab.papers.convergence.reductions import ExplicitAdversarial
from advlab.threats import Ball, Cap
from advlab.training import (
    L2,
    Adversarial,
    Checkpoint,
    Constant,
    Drops,
    Hook,
    LayerBalls,
    Penalize,
    Project,
    WholeBall,
    fit,
)

SEEDS = range(3)
SMALL = WholeBall(radius=0.05)


def two_layer(rng):
    return TwoLayer.draw(3, 16, "sin_cos", rng, init="paired")


def deep(rng):
    return DeepReLU.draw(3, 12, 2, rng)


def sphere(n=5, d=3):
    rngs = generators("audit data", seeds=SEEDS)
    x = torch.stack([torch.randn(n, d, generator=rng, dtype=torch.float64) for rng in rngs])
    return x / x.norm(dim=-1, keepdim=True), torch.tensor([1.0, -1, 1, -1, 1]).double().repeat(3, 1)


def moved(model, size, seed=0):
    """The model with every weight moved at random."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for w in other.parameters():
            w += size * torch.randn(w.shape, generator=generator("move", seed), dtype=w.dtype)
    return other


def run(
    factory, *, comparator=0.1, projection=None, attack=None, loss="pseudo_huber",
    objective=Adversarial, more=(), **changes,
):  # fmt: skip
    stack = Stack.draw(factory, generators("audit", seeds=SEEDS))
    audit = Audit(moved(stack, comparator), projection=projection)
    x, y = sphere()
    fitted = fit(
        stack,
        x,
        y,
        objective=objective(loss=loss, ball=Cap(radius=0.3), attack=attack or PGD(steps=3)),
        rng=generators("attack", seeds=SEEDS),
        hooks=[audit, *more],
        **{"steps": 12, "lr": 0.2} | changes,
    )
    return audit.report(), fitted


@pytest.mark.parametrize(
    ("factory", "attack", "loss"),
    in_turn(
        product(
            [two_layer, deep],
            [PGD(steps=3), Random(samples=1), Anti(), Switch()],
            ["pseudo_huber", "logistic", "squared"],
        ),
        always=3,
    ),
)
def test_honest_runs_pass_and_the_bound_holds(factory, attack, loss):
    report, fitted = run(factory, attack=attack, lr=0.02, loss=loss)
    assert report.ok, report
    assert (report.terms.residual.abs() < 1e-9).all()
    assert (report.loss <= report.bound).all()
    torch.testing.assert_close(report.loss, fitted.log.losses()[:-1].mean(0))
    # What the bound gives away is exactly what it leaves out.
    terms = report.terms
    given = terms.convexity.mean(0) + (terms.after[-1] + terms.projection.sum(0)) / (2 * 0.02 * 12)
    torch.testing.assert_close(report.bound - report.loss, given)


def test_terms_are_the_plain_formulas_at_one_step():
    """Every term from an explicit gradient, row by row."""
    x, y = (part[0] for part in sphere())
    model = two_layer(generator("one"))
    with torch.no_grad():
        model.weight += 0.3 * torch.randn(16, 3, generator=generator("off"), dtype=torch.float64)
    other = moved(model, 0.5)
    first = model.weight.detach().clone()
    audit = Audit(other)
    fit(model, x, y, steps=1, lr=0.1, loss="squared", hooks=[audit])
    terms = audit.report().terms
    start = copy.deepcopy(model)
    with torch.no_grad():
        start.weight.copy_(first)
    way = other.weight.detach() - first
    loss, goal, lin, convex = [], [], [], []
    total = torch.zeros_like(first)
    for row, label in zip(x, y, strict=True):
        f, there = start(row[None])[0], other(row[None]).detach()[0]
        (grad,) = torch.autograd.grad(f, start.weight)
        f = f.detach()
        slope = 2 * (f - label)
        total += slope * grad / 5
        loss.append((f - label) ** 2)
        goal.append((there - label) ** 2)
        lin.append(slope * (there - f - (grad * way).sum()))
        convex.append(goal[-1] - loss[-1] - slope * (there - f))
    for name, expected in {
        "loss": torch.stack(loss).mean(),
        "comparator": torch.stack(goal).mean(),
        "linearisation": torch.stack(lin).mean(),
        "convexity": torch.stack(convex).mean(),
        "gradient": total.square().sum(),
        "distance": way.square().sum(),
        "after": (model.weight.detach() - other.weight.detach()).square().sum(),
    }.items():
        torch.testing.assert_close(getattr(terms, name)[0, 0], expected)


def test_projected_runs_pass_with_a_comparator_in_the_set():
    ball = LayerBalls(radius=1.0, width=12)
    report, _ = run(deep, comparator=0.01, projection=ball, more=[Project(ball)], lr=0.05)
    assert report.ok, report
    assert float(report.terms.projection.max()) > 1e-6
    assert (report.loss <= report.bound).all()


def test_changing_rates_weigh_the_means():
    report, _ = run(two_layer, lr=Drops(lr=0.2, at_shares=(0.5,)))
    assert report.ok, report
    assert (report.loss <= report.bound).all()


def test_the_explicit_objective_is_audited_too():
    plain, _ = run(two_layer, objective=Adversarial)
    ours, _ = run(two_layer, objective=ExplicitAdversarial)
    assert ours.ok
    torch.testing.assert_close(ours.bound, plain.bound)


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"optimizer": partial(torch.optim.SGD, momentum=0.9)}, "plain gradient descent"),
        ({"more": [Penalize(L2(weight=0.1))]}, "plain gradient descent"),
        ({"more": [Project(SMALL)]}, "plain gradient descent"),
        (
            {"more": [Project(SMALL)], "projection": SMALL, "comparator": 3.0},
            "is W\\* in the set",
        ),
    ],
)
def test_dishonest_runs_are_found_with_their_step(changes, law):
    report, _ = run(two_layer, **changes)
    assert not report.ok
    assert re.search(law, report.violations[0].law)
    assert report.violations[0].step <= 3
    assert "BUG" in str(report)


class Liar(Adversarial):
    """Says a hundredth less than the loss; or turns the gradient a little."""

    about: str = "loss"

    def value_and_grad(self, context, weights):
        values, grads = super().value_and_grad(context, weights)
        if self.about == "loss" and context.step == 7:
            return values - 0.01, grads
        if self.about == "gradient" and context.step == 7:
            return values, [1.01 * grad for grad in grads]
        return values, grads


class Forgetful(Adversarial):
    """Attacks anew after the step was taken: the batch is not the one that was descended."""

    def value_and_grad(self, context, weights):
        found = super().value_and_grad(context, weights)
        if context.step == 7:
            context._kept.clear()
        return found


@pytest.mark.parametrize("objective", [Liar, partial(Liar, about="gradient"), Forgetful], ids=str)
def test_a_wrong_loss_gradient_or_batch_breaks_the_identity_at_its_step(objective):
    report, _ = run(two_layer, objective=objective, attack=Random(samples=1))
    assert {one.step for one in report.violations} == {7}
    assert "identity" in report.violations[0].law


def test_a_loss_that_is_not_convex_is_found():
    def cosine(f, y):
        return 1 - (3 * (f - y)).cos()

    report, _ = run(two_layer, comparator=1.0, loss=cosine)
    assert any("convexity" in one.law for one in report.violations)


def test_one_network_of_the_user_is_audited_like_a_stack():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 10), nn.Tanh(), nn.Linear(10, 1)).double()
    x = torch.randn(20, 4, dtype=torch.float64)
    audit = Audit(moved(model, 0.1))
    fit(
        model, x, x[:, 0].sign(), steps=10, lr=Constant(lr=0.1), loss="logistic",
        ball=Ball(norm="linf", radius=0.1), batch=5, hooks=[audit],
    )  # fmt: skip
    report = audit.report()
    assert report.ok
    assert report.table().height == 10
    last = report.table().filter(step=9)
    assert last["mean_loss"][0] == pytest.approx(float(report.loss))
    assert last["bound"][0] == pytest.approx(float(report.bound))
    assert "no violation" in str(report)


def test_wrong_requests_are_refused():
    with pytest.raises(AdvlabError, match="at least one step"):
        Audit(two_layer(generator("w"))).report()
    x, y = (part[0] for part in sphere())
    model = two_layer(generator("w"))
    with pytest.raises(AdvlabError, match="comparator with the run's weights"):
        fit(
            model, x, y, steps=1, lr=0.1, loss="squared",
            hooks=[Audit(TwoLayer.draw(3, 8, "sin_cos", generator("w"), init="paired"))],
        )  # fmt: skip


class Killed(Exception):
    pass


class Killer(Hook):
    """Ends the process of one run in the middle of a step."""

    def __init__(self, at: int | None):
        self.at = at

    def after_gradient(self, run, info):
        if run.step == self.at:
            raise Killed


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_audit_that_continues_is_the_audit_of_the_whole_run(tmp_path, dtype):
    x, y = (part.to(dtype) for part in sphere())

    def audited(at=None, *kept):
        stack = Stack.draw(two_layer, generators("audit", seeds=SEEDS)).to(dtype)
        ball = WholeBall(radius=0.3)
        audit = Audit(moved(stack, 0.01), projection=ball)
        fit(
            stack, x, y, steps=12, lr=0.2, loss="pseudo_huber", ball=Cap(radius=0.3), batch=3,
            attack=PGD(steps=3), rng=generators("attack", seeds=SEEDS),
            hooks=[audit, Project(ball), Killer(at), *kept],
        )  # fmt: skip
        return audit.report()

    keep = Checkpoint(tmp_path / "run.safetensors", every=4)
    whole = audited()
    with pytest.raises(Killed):
        audited(7, keep)
    again = audited(None, keep)
    assert str(again) == str(whole)
    assert again.table().equals(whole.table())
    assert again.terms.eps == torch.finfo(dtype).eps
    assert again.ok
