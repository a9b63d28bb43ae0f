"""train: what it keeps, when it stops, what it goes on from, and what it refuses before a step."""

import resource
import signal
import warnings

import polars as pl
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import update_bn
from torch.utils.data import DataLoader, TensorDataset

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import soft_cross_entropy
from advlab.threats import Ball
from advlab.training import AverageWeights, ErrorsOf, fit, recipe, train

BALL = Ball("linf", 0.1)
CHANNELS = 2


def images(n=60, seed=0):
    """Three classes, told by a bright column."""
    rng = generator("trainer", seed)
    y = torch.arange(n) % 3
    x = torch.rand(n, CHANNELS, 6, 6, generator=rng)
    x[torch.arange(n), :, :, 2 * y] += 1.0
    return x, y


def network(seed=0, width=4):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(CHANNELS, width, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.Flatten(),
        nn.Linear(16 * width, 3),
    )  # fmt: skip


def quick(name="pgd", **settings):
    usual = {"epochs": 3.0, "batch": 20, "lr": 0.05}
    if name not in ("clean", "free"):
        usual["attack"] = {"steps": 2}
    return recipe(name, **{**usual, **settings})


def trained(model=None, how=None, **changes):
    x, y = images()
    given = {
        "recipe": how or quick(),
        "ball": BALL,
        "validation": images(30, seed=1),
        "progress": False,
        **changes,
    }
    return train(model or network(), given.pop("x", x), given.pop("y", y), **given)


def state(model):
    return torch.cat([value.double().flatten() for value in model.state_dict().values()])


def numbers(log: pl.DataFrame) -> pl.DataFrame:
    return log.drop("seconds", "examples_per_second")


def test_the_weights_kept_are_those_of_the_best_epoch():
    seen = []

    def copy(model):
        seen.append(state(model).clone())
        return {"length": float(seen[-1].norm())}

    found = trained(how=quick(epochs=5.0, lr=0.3), measures={"weights": copy})
    errors = found.log["validation_robust_error"]
    best = int(errors.arg_min())
    assert found.best["epoch"] == best + 1
    assert found.log["epoch"].to_list() == [1, 2, 3, 4, 5]
    assert torch.equal(state(found.model), seen[best])
    assert not found.model.training
    again = ErrorsOf(*images(30, seed=1), BALL)(found.model)
    assert again["robust_error"] == errors[best]


def test_each_stage_has_a_best_of_its_own_and_all_weights_train_again_afterwards():
    found = trained(how=quick("stages", epochs=2.0, layer=2, stop_at_stage_1=False))
    assert found.log["stage"].unique(maintain_order=True).to_list() == [
        "adversarial", "clean_above", "adversarial_above",
    ]  # fmt: skip
    assert found.log["epoch"].to_list() == [1, 2, 3, 4, 5, 6]
    assert found.log["step"].to_list() == [3, 6, 9, 12, 15, 18]
    assert found.best["epoch"] >= 5
    assert all(weight.requires_grad for weight in found.model.parameters())


def test_patience_ends_a_run_and_a_finished_run_is_not_trained_again(tmp_path):
    calls = []

    def count(model):
        calls.append(1)
        return {"calls": 0.0}

    def run():
        settings = quick(epochs=30.0, patience=2, lr=0.2)
        return trained(how=settings, out=tmp_path, measures={"count": count})

    one = run()
    assert one.status == "stopped"
    assert "2 epochs" in one.reason
    assert one.log["epoch"][-1] - one.best["epoch"] == 2
    before = len(calls)
    two = run()
    assert len(calls) == before
    assert two.log.equals(one.log)  # times and all
    assert torch.equal(state(one.model), state(two.model))
    assert pl.read_csv(tmp_path / "log.csv").shape == one.log.shape


def test_gradients_are_clipped_whatever_the_order_of_their_memory():
    """Plain gradient descent at rate 1 moves the weights by the length of the gradient."""
    moves = {}
    for clip in (None, 1e-3):
        settings = {"lr": 1.0, "momentum": 0.0, "weight_decay": 0.0, "schedule": "constant"}
        model = network()
        before = [w.detach().clone() for w in model.parameters()]
        how = quick("clean", epochs=1.0, batch=60, clip=clip, **settings)
        trained(model, how, validation=None)
        moved = [w.detach() - b for w, b in zip(model.parameters(), before, strict=True)]
        moves[clip] = float(torch.cat([m.flatten() for m in moved]).norm())
    assert moves[None] > 0.1
    assert moves[1e-3] == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("loader", [False, True], ids=["arrays", "loader"])
def test_averaged_weights_have_statistics_of_their_own(loader):
    """SWA: the mean of the weights after each epoch, and what torch's update_bn measures."""
    x, y = images()
    data = DataLoader(TensorDataset(x, y), 20) if loader else [(x, y)]
    average, kept = AverageWeights("swa", start=0.5), []

    class Keep(AverageWeights):
        def after_step(self, run):
            if run.step % run.steps_per_epoch == 0 and run.step >= run.steps / 2:
                kept.append([w.detach().clone() for w in run.model.parameters()])

    fit(network(), data, epochs=4, lr=0.1, hooks=[average, Keep("swa")], rng=0)
    assert len(kept) == average.taken == 3
    by_hand = network()
    with torch.no_grad():
        for w, *several in zip(by_hand.parameters(), *kept, strict=True):
            w.copy_(torch.stack(several).mean(0))
    update_bn([batch for batch, _ in data], by_hand)
    assert torch.allclose(state(average.model), state(by_hand), atol=1e-5)


def test_shares_of_classes_that_are_all_one_class_train_like_labels():
    _, y = images()
    shares = nn.functional.one_hot(y, 3).float()
    soft = trained(y=shares, how=quick(loss="soft_cross_entropy"))
    hard = trained()
    names = ["objective", "train_robust_loss", "validation_clean_loss"]
    assert soft.log["train_robust_error"].to_list() == hard.log["train_robust_error"].to_list()
    for name in names:
        assert soft.log[name].to_list() == pytest.approx(hard.log[name].to_list(), rel=1e-3)
    with pytest.raises(AdvlabError, match="soft_cross_entropy"):
        trained(y=shares)
    mixed = 0.5 * shares + 0.5 / 3
    outputs = torch.randn(60, 3, generator=generator("soft"))
    wanted = nn.functional.cross_entropy(outputs, mixed, reduction="none")
    assert torch.allclose(soft_cross_entropy(outputs, mixed), wanted, atol=1e-6)
    with pytest.raises(AdvlabError, match="sum to 1"):
        soft_cross_entropy(outputs, shares * 2)


@pytest.mark.parametrize("judged", [True, False], ids=["validation", "checkpoint"])
def test_a_loss_that_is_not_finite_stops_the_run_and_the_last_good_weights_stay(tmp_path, judged):
    def burst(x, rng):
        burst.batches += 1
        return x * (1e38 if burst.batches == 8 else 1.0)  # the second batch of epoch 3

    burst.batches = 0
    changes = {} if judged else {"validation": None}
    with pytest.warns(UserWarning, match="not finite at step 7 of stage adversarial"):
        found = trained(how=quick(epochs=5.0), augment=burst, out=tmp_path, **changes)
    assert found.status == "diverged"
    assert ("epoch" if judged else "step 6") in found.reason
    assert bool(state(found.model).isfinite().all())
    assert len(found.log) == 2


def test_a_full_disk_is_one_line_and_the_last_checkpoint_stays(tmp_path):
    def full(model):
        full.calls += 1
        if full.calls == 2:  # the second epoch; the file has some 40 kB
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        return {"calls": 0.0}

    full.calls = 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with pytest.raises(AdvlabError, match="must be a file that can be written") as error:
            trained(network(width=32), out=tmp_path, measures={"full": full})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, former)
    assert "\n" not in str(error.value)
    (kept,) = tmp_path.glob("checkpoint*")
    assert list(tmp_path.glob(".*.part")) == []
    full.calls = 10
    whole = trained(network(width=32), measures={"full": full})
    after = trained(network(width=32), out=tmp_path, measures={"full": full})
    assert kept.is_file()
    assert numbers(after.log).equals(numbers(whole.log))
    assert torch.equal(state(after.model), state(whole.model))


def test_checkpoints_of_other_runs_are_refused_and_the_difference_is_said(tmp_path):
    trained(out=tmp_path)
    for change, words in (
        ({"how": quick(lr=0.01)}, "lr differs"),
        ({"how": quick("trades")}, "settings: .*objective"),
        ({"model": network(width=5)}, "another model: layer 0"),
        ({"validation": images(30, seed=2)}, "hooks"),
        ({"ball": Ball("l2", 0.1)}, "ball"),
        ({"rng": 1}, "rng"),
    ):
        with pytest.raises(AdvlabError, match=words):
            trained(out=tmp_path, **change)
    (file,) = tmp_path.glob("checkpoint*")
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(AdvlabError, match="whole safetensors"):
        trained(out=tmp_path)


X, Y = images()
BAD = {
    "input shape": ({"x": X[:, :1], "validation": None}, "takes inputs of shape"),
    "labels": ({"y": Y + 1}, r"labels must be 0 \.\. 2"),
    "fewer labels": ({"y": Y[:-1]}, "y of shape"),
    "validation labels": ({"validation": (X, Y + 1)}, r"labels must be 0 \.\. 2"),
    "validation shape": ({"validation": (X[:, :, :5], Y)}, "validation inputs of shape"),
    "empty validation": ({"validation": (X[:0], Y[:0])}, "at least one example"),
    "units of 0-255": ({"ball": Ball("linf", 8.0)}, "divide by 255"),
    "no ball": ({"ball": None}, "a threat set"),
    "recipe": ({"recipe": "pdg"}, "did you mean pgd"),
    "tensorboard": ({"tensorboard": True}, "out, a folder"),
    "fabric": ({"fabric": 3}, "lightning_fabric"),
    "accumulate": ({"accumulate": 0}, "accumulate"),
    "free in parts": ({"recipe": quick("free", m=2), "accumulate": 2}, "whole batches"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_a_line_before_the_first_step(name):
    changes, words = BAD[name]
    model = network()
    before = state(model)
    with pytest.raises(AdvlabError, match=words) as error:
        trained(model, **changes)
    assert "\n" not in str(error.value)
    assert torch.equal(state(model), before)


def test_a_class_without_examples_is_said():
    x, y = images()
    with pytest.warns(UserWarning, match=r"of classes \[2\]"):
        trained(x=x[y < 2], y=y[y < 2], how=quick(epochs=1.0))


def test_loaders_and_datasets_train_too():
    x, y = images()
    loader = DataLoader(TensorDataset(x, y), 25)
    found = trained(x=loader, y=None, how=quick(epochs=2.0))
    assert found.log["step"].to_list() == [3, 6]
    rate = found.log["examples_per_second"] * found.log["seconds"]
    assert rate.to_list() == pytest.approx([60, 60])


def test_tensorboard_has_the_numbers_of_the_log(tmp_path):
    pytest.importorskip("tensorboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        found = trained(out=tmp_path, tensorboard=True)
        events = EventAccumulator(str(tmp_path / "tensorboard"))
        events.Reload()
    told = events.Scalars("validation_robust_loss")
    assert [one.step for one in told] == found.log["step"].to_list()
    values = found.log["validation_robust_loss"].to_list()
    assert [one.value for one in told] == pytest.approx(values, rel=1e-6)


def test_one_device_of_fabric_is_the_same_run():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fabric_module = pytest.importorskip("lightning_fabric")
        fabric = fabric_module.Fabric(accelerator="cpu", devices=1)
        many = fabric_module.Fabric(accelerator="cpu", devices=2)
        half = fabric_module.Fabric(accelerator="cpu", devices=1, precision="64-true")
    alone, placed = trained(), trained(fabric=fabric)
    assert torch.equal(state(alone.model), state(placed.model))
    with pytest.raises(AdvlabError, match="2 processes were started"):
        trained(fabric=many)
    with pytest.raises(AdvlabError, match="bf16-mixed"):
        trained(fabric=half)
