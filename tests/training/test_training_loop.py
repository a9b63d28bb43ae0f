"""The one loop: against a plain PyTorch loop, through divergence, and across interruptions."""

import copy

import pytest
import torch
from torch import nn

from advlab.attacks import FGM, PGD
from advlab.core.errors import AdvlabError
from advlab.models import Linear, Stack
from advlab.threats import Ball
from advlab.training import (
    L1,
    L2,
    SGD,
    Adam,
    Adversarial,
    Clean,
    Constant,
    Cosine,
    Drops,
    LayerBalls,
    Mixed,
    fit,
)

BALL = Ball(norm="l2", radius=0.3)


def net(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))


def data(n: int = 40, seed: int = 1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(n, 5, generator=rng), torch.randint(0, 3, (n,), generator=rng)


def seeded(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (SGD(), lambda p: torch.optim.SGD(p, lr=0.1)),
        (SGD(momentum=0.9), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
        (
            SGD(momentum=0.9, nesterov=True),
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        ),
        (Adam(), lambda p: torch.optim.Adam(p, lr=0.1)),
    ],
)
def test_adversarial_training_is_the_plain_loop(ours, theirs):
    x, y = data()
    model, plain = net(), net()
    optimizer = theirs(plain.parameters())
    fit(model, x, y, steps=12, lr=0.1, ball=BALL, attack=FGM(), optimizer=ours, rng=seeded())
    for _ in range(12):
        leaf = x.clone().requires_grad_()
        (g,) = torch.autograd.grad(nn.functional.cross_entropy(plain(leaf), y), leaf)
        moved = x + 0.3 * g / g.norm(dim=1, keepdim=True)
        clean = nn.functional.cross_entropy(plain(x), y, reduction="none")
        worse = nn.functional.cross_entropy(plain(moved), y, reduction="none") > clean
        optimizer.zero_grad()
        nn.functional.cross_entropy(plain(torch.where(worse[:, None], moved, x)), y).backward()
        optimizer.step()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-5)


def test_mixed_is_clean_at_zero_and_adversarial_at_one():
    x, y = data()
    first = {}
    for name, objective in {
        "clean": Clean(), "zero": Mixed(lam=0), "half": Mixed(lam=0.5),
        "one": Mixed(lam=1), "attacked": Adversarial(),
    }.items():  # fmt: skip
        result = fit(net(), x, y, steps=0, lr=1, ball=BALL, attack=FGM(), objective=objective)
        first[name] = float(result.log.losses()[0])
    assert first["clean"] == pytest.approx(first["zero"])
    assert first["one"] == pytest.approx(first["attacked"])
    assert first["half"] == pytest.approx((first["clean"] + first["attacked"]) / 2)
    assert first["attacked"] > first["clean"]


SETTINGS = {
    "steps": 25,
    "lr": Cosine(lr=0.2, warmup=0.1),
    "ball": BALL,
    "attack": PGD(steps=2),
    "batch": 16,
    "optimizer": SGD(momentum=0.9),
    "penalty": L1(weight=1e-3),
    "projection": LayerBalls(radius=2.0),
    "probes": {"size": lambda m: m[0].weight.norm()},
    "probe_at": 5,
}


class Stop(Exception):
    pass


@pytest.mark.parametrize("die_at", [4, 10, 17])
def test_a_run_that_was_stopped_continues_with_the_same_bits(tmp_path, die_at):
    x, y = data()
    whole = fit(net(), x, y, rng=seeded(), **SETTINGS)

    calls = 0

    def dying_loss(outputs, labels):
        nonlocal calls
        calls += 1
        if calls > die_at * 6:
            raise Stop
        return nn.functional.cross_entropy(outputs, labels, reduction="none")

    kept = {"checkpoint": tmp_path / "run.safetensors", "checkpoint_every": 3}
    plain = lambda z, y: nn.functional.cross_entropy(z, y, reduction="none")  # noqa: E731
    whole = fit(net(), x, y, rng=seeded(), loss=plain, **SETTINGS)
    with pytest.raises(Stop):
        fit(net(), x, y, rng=seeded(), loss=dying_loss, **kept, **SETTINGS)
    assert [p.name for p in tmp_path.iterdir()] == ["run.safetensors"]
    again = fit(net(5), x, y, rng=seeded(99), loss=plain, **kept, **SETTINGS)
    assert torch.equal(again.log.losses(), whole.log.losses())
    assert torch.equal(again.log.probe("size"), whole.log.probe("size"))
    for p, q in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(p, q)


def test_a_stack_continues_with_the_same_bits(tmp_path):
    x = torch.randn(3, 10, 4, dtype=torch.float64, generator=seeded())
    y = torch.randn(3, 10, dtype=torch.float64, generator=seeded())

    def run(**more):
        stack = Stack([Linear.zero(4) for _ in range(3)])
        rngs = [seeded(s) for s in range(3)]
        return fit(stack, x, y, steps=20, lr=0.05, loss="squared", ball=BALL,
                   attack=PGD(steps=2), rng=rngs, **more)  # fmt: skip

    whole = run()
    path = tmp_path / "stack.safetensors"
    run(checkpoint=path, checkpoint_every=7)
    again = run(checkpoint=path, checkpoint_every=7)
    assert torch.equal(again.log.losses(), whole.log.losses())


def test_a_checkpoint_of_other_settings_or_a_broken_one_is_refused(tmp_path):
    x, y = data()
    path = tmp_path / "c.safetensors"
    fit(net(), x, y, steps=4, lr=0.1, checkpoint=path, checkpoint_every=2)
    with pytest.raises(AdvlabError, match="same settings"):
        fit(net(), x, y, steps=4, lr=0.2, checkpoint=path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(AdvlabError, match="whole safetensors"):
        fit(net(), x, y, steps=4, lr=0.1, checkpoint=path)


def test_divergence_is_a_status_with_its_step_and_keeps_the_log():
    x, y = torch.randn(20, 3, dtype=torch.float64), torch.randn(20, dtype=torch.float64)
    result = fit(Linear.zero(3), 1e3 * x, y, steps=500, lr=1.0, loss="squared")
    assert result.status == "diverged"
    (at,) = result.diverged_at
    assert at is not None
    assert result.steps == at < 500
    losses = result.log.losses()[:, 0]
    assert torch.isfinite(losses[:at]).all()
    assert not torch.isfinite(losses[at])


def test_a_diverging_replicate_does_not_touch_its_neighbours():
    x = torch.randn(2, 20, 3, dtype=torch.float64, generator=seeded())
    y = torch.randn(2, 20, dtype=torch.float64, generator=seeded())
    x[1] *= 1e3
    stack = Stack([Linear.zero(3), Linear.zero(3)])
    result = fit(stack, x, y, steps=200, lr=0.1, loss="squared")
    alone = fit(Linear.zero(3), x[0], y[0], steps=200, lr=0.1, loss="squared")
    assert result.diverged_at[0] is None
    assert result.diverged_at[1] is not None
    assert result.steps == 200
    torch.testing.assert_close(result.log.losses()[:, 0], alone.log.losses()[:, 0])


def test_probes_see_the_weights_before_their_step_and_after_the_last():
    x, y = data()
    model = net()
    seen = fit(
        model, x, y, steps=7, lr=0.1, probes={"w": lambda m: m[0].weight.sum()}, probe_at={0, 3}
    )
    assert seen.log.probe_steps == [0, 3, 7]
    assert float(seen.log.probe("w")[0]) == pytest.approx(float(net()[0].weight.sum().detach()))
    assert float(seen.log.probe("w")[-1]) == pytest.approx(float(model[0].weight.sum().detach()))
    table = seen.log.table(seeds=[11])
    assert table.columns == ["step", "seed", "loss", "w"]
    assert table["seed"].to_list() == [11, 11, 11]


def test_schedules():
    assert Constant(lr=0.1).at(5, 10) == 0.1
    assert [Drops(lr=1.0).at(s, 100) for s in (74, 75, 90)] == pytest.approx([1.0, 0.1, 0.01])
    cosine = Cosine(lr=1.0, warmup=0.1)
    rates = [cosine.at(s, 100) for s in range(101)]
    assert max(rates) == pytest.approx(1.0)
    assert rates[-1] == pytest.approx(0.0)
    assert rates[:10] == sorted(rates[:10])


def test_progress_goes_to_stderr(capsys):
    x, y = data()
    fit(net(), x, y, steps=3, lr=0.1, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "training" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.full((40, 5), float("nan"))}, "finite"),
        ({"y": torch.zeros(39, dtype=torch.long)}, r"x of shape"),
        ({"y": torch.full((40,), 9)}, "labels must be 0 .. 2"),
        ({"x": data()[0].double()}, "own type"),
        ({"steps": -1}, "steps"),
        ({"batch": 0}, "batch"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"lr": -0.1}, "lr"),
        ({"penalty": None, "loss": "logistic", "y": torch.zeros(40)}, "-1 or \\+1"),
    ],
)
def test_bad_input_is_named(change, message):
    x, y = data()
    settings = {"x": x, "y": y, "steps": 3, "lr": 0.1, "penalty": L2(weight=0.1)} | change
    with pytest.raises(AdvlabError, match=message):
        fit(net(), settings.pop("x"), settings.pop("y"), **settings)


def test_a_model_without_weights_and_a_stack_with_wrong_data_are_refused():
    x, y = data()
    model = net().requires_grad_(False)
    with pytest.raises(AdvlabError, match="weights that train"):
        fit(model, x, y, steps=1, lr=0.1)
    with pytest.raises(AdvlabError, match="R = 2"):
        fit(Stack([net(), net()]), x, y, steps=1, lr=0.1)


def test_a_stack_trains_in_mini_batches_as_its_members_do():
    """Each replicate shuffles its own rows: its run is the run it has alone."""
    members = [small_network(seed) for seed in range(3)]
    x = torch.randn(3, 20, 5, generator=torch.Generator().manual_seed(7))
    y = torch.where(x.sum(2) > 0, 1.0, -1.0)
    settings = {"steps": 13, "lr": 0.1, "loss": "logistic", "batch": 6}
    alone = [
        fit(copy.deepcopy(member), x[r], y[r], rng=[seeded(r)], **settings)
        for r, member in enumerate(members)
    ]
    together = fit(Stack(members), x, y, rng=[seeded(r) for r in range(3)], **settings)
    one_by_one = torch.cat([run.log.losses() for run in alone], dim=1)
    torch.testing.assert_close(together.log.losses(), one_by_one, rtol=1e-5, atol=1e-6)


def small_network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1), nn.Flatten(0))


def test_the_radius_warms_up_linearly_and_prepare_sees_every_step():
    x, y = data()
    radii, steps = [], []
    fit(
        net(), x, y, steps=6, lr=0.1, ball=Ball(norm="l2", radius=0.8), warmup=4,
        attack=FGM(), watch=lambda moment: radii.append(moment.scene.ball.radius),
        prepare=lambda model, step: steps.append(step),
    )  # fmt: skip
    assert radii == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.8])
    assert steps == list(range(7))
