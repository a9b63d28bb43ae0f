"""What holds for every recipe of the registry: it trains, repeats itself, resumes, stays inside."""

import pytest
import torch
from torch import nn

from advlab.core.errors import AdvlabError
from advlab.losses import LabelSmoothing
from advlab.threats import Ball
from advlab.training import AWP, Checkpoint, Hook, Penalize, fit
from advlab.training.recipes import RECIPES, Recipe, recipe, with_settings

BALL = Ball("linf", 0.1, box=(0.0, 1.0))
STEPS = 4


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)
    )


def data() -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    return torch.rand(24, 6, generator=rng), torch.randint(0, 3, (24,), generator=rng)


class Killed(Exception):
    pass


class Killer(Hook):
    def after_gradient(self, run, info):
        if run.step == 2:
            raise Killed

    def settings(self):
        return None


class Inside(Hook):
    """Every point at which the objective attacked is in the threat set of its row."""

    seen = 0

    def after_gradient(self, run, info):
        found = info.context._kept.get("attacked")
        if found is not None:
            assert info.context.ball.contains(found, info.context.x).all()
            assert BALL.contains(found, info.context.x).all()
            self.seen += 1

    def settings(self):
        return None


def trained(which: Recipe, seed: int = 3, path=None, killed: int | None = None) -> dict:
    """The weights after four steps of each stage; one stage may be killed at its third step."""
    net, (x, y) = network(), data()
    rng = torch.Generator().manual_seed(seed)
    inside = Inside()
    for number, stage in enumerate(which.stages(BALL, 3)):
        if stage.prepare is not None:
            stage.prepare(net, rng)
        hooks = [*stage.hooks, inside]
        if path is not None:
            hooks += [Killer()] if number == killed else []
            hooks.append(Checkpoint(path / f"{number}.safetensors", every=1))
        fit(
            net,
            x,
            y,
            steps=STEPS,
            batch=8,
            lr=stage.schedule,
            optimizer=stage.optimizer,
            objective=stage.objective,
            hooks=hooks,
            rng=seed + number,
        )
    attacked = which.name != "clean"
    assert (inside.seen > 0) == attacked
    return {name: value.clone() for name, value in net.state_dict().items()}


def same(one: dict, other: dict) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_trains_and_repeats_itself(name):
    first = trained(recipe(name))
    assert same(first, trained(recipe(name)))
    assert not same(first, trained(recipe(name), seed=4))
    assert not same(first, network().state_dict())
    assert all(torch.isfinite(value).all() for value in first.values())


@pytest.mark.parametrize("name", RECIPES)
def test_a_run_that_was_killed_goes_on_to_the_same_bits(name, tmp_path):
    which = recipe(name, awp=0.01) if name == "free" else recipe(name)
    whole = trained(which)
    stages = len(which.stages(BALL, 3))
    for killed in range(stages):
        place = tmp_path / str(killed)
        place.mkdir()
        with pytest.raises(Killed):
            trained(which, path=place, killed=killed)
        assert same(whole, trained(which, path=place))


@pytest.mark.parametrize("name", RECIPES)
def test_weight_perturbation_penalty_and_smoothing_go_with_every_recipe(name):
    which = (
        recipe(name, awp=0.01, l1=1e-3, label_smoothing=0.1, lr_warmup=1.0, radius_warmup=1.0)
        if name != "clean"
        else recipe(name, awp=0.01, l1=1e-3, label_smoothing=0.1, lr_warmup=1.0)
    )
    for stage in which.stages(BALL, 5):
        assert isinstance(stage.objective, AWP)
        assert stage.objective.loss == LabelSmoothing(0.1)
        assert any(isinstance(hook, Penalize) for hook in stage.hooks)
    assert not same(trained(which), trained(recipe(name)))
    said = which.describe()
    assert "Wu, Xia and Wang" in said["citation"]
    assert "0.001 sum |w|" in said["formula"]


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_say_what_they_are(name):
    which = recipe(name)
    assert which.name == name
    said = which.describe()
    assert set(said) == {"recipe", "citation", "formula"}
    assert any(
        year in said["citation"] for year in ("2016", "2018", "2019", "2020", "2021", "2025")
    )
    assert "{" not in said["formula"]
    assert len({stage.name for stage in which.stages(BALL, 5)}) == len(which.stages(BALL, 5))
    assert which.key() == type(which)().key() != with_settings(which, ["lr=0.123"]).key()


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "clean"])
def test_attacked_recipes_want_a_threat_set(name):
    with pytest.raises(AdvlabError, match=f"a threat set for the recipe {name}; got none"):
        recipe(name).stages(None, 3)


def test_published_defaults():
    trades, mart, fast = recipe("trades"), recipe("mart"), recipe("fast")
    assert (trades.beta, trades.attack.steps, mart.beta, mart.attack.steps) == (6.0, 10, 5.0, 10)
    # Fractions of a radius of 8/255: steps of 2/255, and 10/255 for FGSM.
    assert trades.attack.step_size * 8 == mart.attack.step_size * 8 == 2
    assert fast.attack.step_size * 8 == 10
    assert (fast.attack.steps, fast.attack.random_start, fast.schedule) == (1, True, "cyclic")
    assert (recipe("free").m, recipe("free").epochs * recipe("free").m) == (8, recipe("pgd").epochs)


def test_optimizers_and_schedules_are_made_as_set():
    weight = [nn.Parameter(torch.zeros(2))]
    for kind in ("sgd", "adam", "adamw"):
        (stage,) = recipe("clean", optimizer=kind, weight_decay=0.01, momentum=0.8).stages(None, 5)
        made = stage.optimizer(weight, lr=0.3)
        assert type(made).__name__.lower() == kind
        assert made.param_groups[0]["weight_decay"] == 0.01
        assert made.param_groups[0]["lr"] == 0.3
    assert stage.schedule.lr == 0.1
    rates = {}
    for kind in ("constant", "drops", "steps", "cosine", "cyclic"):
        (stage,) = recipe("clean", schedule=kind, epochs=10).stages(None, 5)
        (warm,) = recipe("clean", schedule=kind, epochs=10, lr_warmup=2.0).stages(None, 5)
        rates[kind] = tuple(stage.schedule.at(step, 50) for step in range(50))
        assert warm.schedule.at(0, 50) < 0.1 * 1 / 8
        assert max(rates[kind]) == pytest.approx(0.1)
    assert len(set(rates.values())) == 5


def test_warm_ups_are_counted_in_epochs():
    (stage,) = recipe("pgd", radius_warmup=2.0, awp=0.01, awp_warmup=3.0).stages(BALL, 7)
    assert (stage.objective.objective.warmup, stage.objective.warmup) == (14, 21)
    (stage,) = recipe("free", radius_warmup=2.0, m=4).stages(BALL, 7)
    assert stage.objective.warmup == 56
