"""Catastrophic overfitting is seen where it happens, and not where it does not."""

import warnings

import pytest
import torch
from torch import nn

from advlab.attacks import PGD, Identity
from advlab.core.errors import AdvlabError
from advlab.threats import Ball
from advlab.training import Adversarial, CatastrophicOverfitting, fit, recipe

BALL = Ball("linf", 0.28, box=(0.0, 1.0))
FGSM_FROM_X = PGD(steps=1, step_size=1.0, random_start=False, jump=False, keep="last")
SEVEN = PGD(steps=7, step_size=0.25, jump=False, keep="last")


def clusters() -> tuple[torch.Tensor, torch.Tensor]:
    """Five clusters in 300 dimensions whose centers are 0.6 apart in each coordinate, or equal."""
    rng = torch.Generator().manual_seed(0)
    centers = 0.2 + 0.6 * torch.randint(0, 2, (5, 300), generator=rng)
    y = torch.randint(0, 5, (500,), generator=rng)
    return (centers[y] + 0.15 * torch.randn(500, 300, generator=rng)).clamp(0, 1), y


def trained(attack, watch=(), steps=120):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(300, 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, 5),
    )
    objective = Adversarial(ball=BALL, attack=attack)
    return fit(
        net,
        *clusters(),
        steps=steps,
        lr=2e-3,
        batch=100,
        objective=objective,
        optimizer=torch.optim.Adam,
        hooks=list(watch),
        rng=1,
    )


def test_it_is_said_when_one_step_training_collapses():
    watch = CatastrophicOverfitting(every=30, one_step=FGSM_FROM_X)
    with pytest.warns(UserWarning, match=r"catastrophic overfitting at step \d+: FGSM accuracy"):
        run = trained(FGSM_FROM_X, [watch])
    fgsm, pgd = (run.log.probe(name)[-1, 0] for name in ("fgsm_accuracy", "pgd_accuracy"))
    assert fgsm > 0.7 > 0.25 > pgd
    assert run.log.steps["pgd_accuracy"] == [0, 30, 60, 90, 120]
    assert run.status == "finished"
    assert watch.collapsed_at in (30, 60, 90)


def test_it_stops_the_run_where_that_is_wanted():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = trained(FGSM_FROM_X, [CatastrophicOverfitting(30, stop=True, one_step=FGSM_FROM_X)])
    assert run.status == "stopped"
    assert run.steps < 120
    assert run.reason.startswith(f"catastrophic overfitting at step {run.steps}: FGSM")


def test_it_is_silent_with_several_steps_of_attack():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = trained(SEVEN, [CatastrophicOverfitting(every=30, one_step=FGSM_FROM_X)])
    fgsm, pgd = (run.log.probe(name)[:, 0] for name in ("fgsm_accuracy", "pgd_accuracy"))
    assert (pgd[1:] > 0.4 * fgsm[1:]).all()
    assert float(pgd[-1]) > 0.4


def test_it_changes_nothing_in_the_run():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watched = trained(FGSM_FROM_X, [CatastrophicOverfitting(5)], steps=12)
    alone = trained(FGSM_FROM_X, steps=12)
    assert torch.equal(watched.log.losses(), alone.log.losses())
    for one, other in zip(watched.model.parameters(), alone.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_few_rows_decide_nothing():
    """The batch that is left at the end of an epoch may be one row, right once and wrong once."""
    torch.manual_seed(0)
    net, (x, y) = nn.Sequential(nn.Linear(300, 64), nn.ReLU(), nn.Linear(64, 5)), clusters()
    fit(net, x, y, steps=20, lr=2e-3, optimizer=torch.optim.Adam)
    watch = CatastrophicOverfitting(every=1, one_step=Identity())  # no attack: accuracy 1 against 0
    for rows, seen in ((19, None), (20, 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if seen == 0 else "error")
            fit(net, x[:rows], y[:rows], steps=1, lr=1e-6, ball=BALL, hooks=[watch])
        assert watch.collapsed_at == seen


def test_the_fast_recipe_watches_as_it_is_told():
    (stage,) = recipe("fast", check_every=7, stop_on_collapse=True, collapsed=0.2).stages(BALL, 5)
    (watch,) = stage.hooks
    assert (watch.every, watch.stop, watch.collapsed) == (7, True, 0.2)
    assert watch.one_step == stage.objective.attack
    assert recipe("fast", check_every=0).stages(BALL, 5)[0].hooks == ()
    with pytest.raises(AdvlabError, match="high between 0 and 1"):
        CatastrophicOverfitting(high=0)
