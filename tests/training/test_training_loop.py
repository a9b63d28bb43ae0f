"""The one loop: against a plain PyTorch loop, through divergence, and across interruptions."""

import copy
from contextlib import contextmanager, nullcontext
from functools import partial

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from advlab.attacks import FGM, PGD
from advlab.core.errors import AdvlabError
from advlab.losses import cross_entropy
from advlab.models import Linear, Stack
from advlab.threats import Ball
from advlab.training import (
    L1,
    L2,
    Adversarial,
    Checkpoint,
    Clean,
    Constant,
    Cosine,
    Drops,
    Hook,
    LayerBalls,
    Mixed,
    ModelSchedule,
    Penalize,
    Probe,
    ProgressBar,
    Project,
    StopWhen,
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


MOMENTUM = partial(torch.optim.SGD, momentum=0.9)
OPTIMIZERS = [
    torch.optim.SGD,
    MOMENTUM,
    partial(MOMENTUM, nesterov=True, weight_decay=0.01),
    torch.optim.Adam,
    torch.optim.AdamW,
]


@pytest.mark.parametrize("made", [False, True], ids=["class", "instance"])
@pytest.mark.parametrize("kind", OPTIMIZERS, ids=str)
def test_adversarial_training_is_the_plain_loop(kind, made):
    x, y = data()
    model, plain = net(), net()
    optimizer = kind(plain.parameters(), lr=0.1)
    how = (
        {"optimizer": kind(model.parameters(), lr=0.1)} if made else {"optimizer": kind, "lr": 0.1}
    )
    fit(model, x, y, steps=12, ball=BALL, attack=FGM(), rng=seeded(), **how)
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
    against = {"ball": BALL, "attack": FGM()}
    for name, objective in {
        "clean": Clean(), "zero": Mixed(lam=0, **against), "half": Mixed(lam=0.5, **against),
        "one": Mixed(lam=1, **against), "attacked": Adversarial(**against),
    }.items():  # fmt: skip
        result = fit(net(), x, y, steps=0, lr=1, objective=objective)
        first[name] = float(result.log.losses()[0])
    assert first["clean"] == pytest.approx(first["zero"])
    assert first["one"] == pytest.approx(first["attacked"])
    assert first["half"] == pytest.approx((first["clean"] + first["attacked"]) / 2)
    assert first["attacked"] > first["clean"]


class Killed(Exception):
    pass


class Killer(Hook):
    """Ends a run in the middle of a step, as a lost machine does."""

    def __init__(self, at: int | None):
        self.at = at

    def after_gradient(self, run, info):
        if run.step == self.at:
            raise Killed


class Drift(Hook):
    """Moves the weights by what it has counted: a hook whose state matters."""

    def __init__(self):
        self.seen = torch.zeros(())

    def after_gradient(self, run, info):
        self.seen += 1

    def after_step(self, run):
        run.weights[0].data += 1e-3 * self.seen

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


def whole_run(model, optimizer, *more: Hook, rng=None):
    """A run in which everything that has a state takes part."""
    x, y = data()
    return fit(
        model, x, y, steps=25, lr=Cosine(lr=0.02, warmup=0.1), batch=16, optimizer=optimizer,
        objective=Mixed(ball=BALL, attack=PGD(steps=2), warmup=5),
        hooks=[
            Probe({"size": lambda m: m[0].weight.norm()}, every=5),
            Probe({"bias": lambda m: m[0].bias.detach()}, at={2, 11}),
            Penalize(L1(weight=1e-3)), Project(LayerBalls(radius=2.0, width=1)), Drift(), *more,
        ],
        rng=rng or seeded(),
    )  # fmt: skip


@pytest.mark.parametrize("kind", OPTIMIZERS, ids=str)
@pytest.mark.parametrize("die_at", [4, 17])
def test_a_run_that_was_stopped_continues_with_the_same_bits(tmp_path, die_at, kind):
    whole = whole_run(net(), kind, Killer(None))
    path = tmp_path / "run.safetensors"
    with pytest.raises(Killed):
        whole_run(net(), kind, Killer(die_at), Checkpoint(path, every=3))
    assert [p.name for p in tmp_path.iterdir()] == ["run.safetensors"]
    kept = Checkpoint(path, every=3)
    again = whole_run(net(), kind, Killer(None), ProgressBar(), kept)
    assert torch.equal(again.log.losses(), whole.log.losses())
    for name in ("size", "bias"):
        assert torch.equal(again.log.probe(name), whole.log.probe(name))
    assert (
        again.log.steps == whole.log.steps == {"size": [0, 5, 10, 15, 20, 25], "bias": [2, 11, 25]}
    )
    for p, q in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(p, q)


def test_a_hook_stops_the_run_with_its_reason(tmp_path):
    x, y = data()
    path = tmp_path / "run.safetensors"

    def moved(model):
        return float((model[0].weight - net()[0].weight).detach().norm())

    def run(*more):
        large = StopWhen(lambda m: moved(m) > 0.1, every=2, reason="large")
        return fit(net(), x, y, steps=50, lr=0.1, hooks=[large, *more])

    result = run()
    assert (result.status, result.reason) == ("stopped", "large")
    assert 0 < result.steps < 50
    assert result.steps % 2 == 0
    assert len(result.log.loss) == result.steps + 1
    assert moved(result.model) > 0.1
    kept = Checkpoint(path, every=3)
    assert run(kept).steps == run(kept).steps == result.steps
    finished = fit(net(), x, y, steps=3, lr=0.1)
    assert (finished.status, finished.reason) == ("finished", None)


def test_a_stop_after_a_step_keeps_the_loss_of_the_final_weights():
    class StopAt(Hook):
        def after_step(self, run):
            if run.step == 4:
                run.stop("four")

    x, y = data()
    seen = Probe({"w": lambda m: m[0].weight.sum()}, at=())
    result = fit(net(), x, y, steps=9, lr=0.1, hooks=[seen, StopAt()])
    assert (result.steps, result.reason, result.log.probe_steps) == (4, "four", [4])
    assert torch.equal(result.log.losses(), fit(net(), x, y, steps=4, lr=0.1).log.losses())


def test_hooks_run_in_their_order_and_leave_also_when_the_run_fails():
    seen = []

    class Recorder(Hook):
        def __init__(self, name):
            self.name = name

        @contextmanager
        def during(self, run):
            seen.append(("in", self.name))
            try:
                yield
            finally:
                seen.append(("out", self.name))

        def before_step(self, run):
            seen.append(("before", self.name, run.step))

        def after_gradient(self, run, info):
            seen.append(("gradient", self.name, run.step, info.last))

        def after_step(self, run):
            seen.append(("after", self.name, run.step))

    x, y = data()
    with pytest.raises(Killed):
        fit(net(), x, y, steps=3, lr=0.1, hooks=[Recorder("a"), Recorder("b"), Killer(1)])
    assert seen == [
        ("in", "a"), ("in", "b"),
        ("before", "a", 0), ("before", "b", 0),
        ("gradient", "a", 0, False), ("gradient", "b", 0, False),
        ("after", "a", 1), ("after", "b", 1),
        ("before", "a", 1), ("before", "b", 1),
        ("gradient", "a", 1, False), ("gradient", "b", 1, False),
        ("out", "b"), ("out", "a"),
    ]  # fmt: skip


def test_a_stack_continues_with_the_same_bits(tmp_path):
    x = torch.randn(3, 10, 4, dtype=torch.float64, generator=seeded())
    y = torch.randn(3, 10, dtype=torch.float64, generator=seeded())

    def run(**more):
        stack = Stack([Linear.zero(4) for _ in range(3)])
        rngs = [seeded(s) for s in range(3)]
        return fit(stack, x, y, steps=20, lr=0.05, loss="squared", ball=BALL,
                   attack=PGD(steps=2), rng=rngs, **more)  # fmt: skip

    whole = run()
    kept = Checkpoint(tmp_path / "stack.safetensors", every=7)
    run(hooks=[kept])
    again = run(hooks=[kept])
    assert torch.equal(again.log.losses(), whole.log.losses())


def test_a_checkpoint_of_other_settings_or_a_broken_one_is_refused(tmp_path):
    x, y = data()
    path = tmp_path / "c.safetensors"
    kept = Checkpoint(path, every=2)
    settings = {"steps": 4, "lr": 0.1, "ball": BALL, "attack": FGM()}
    fit(net(), x, y, hooks=[Project(LayerBalls(radius=2.0, width=1)), kept], **settings)
    for hooks, change in (
        ([Project(LayerBalls(radius=2.0, width=1)), kept], {"lr": 0.2}),
        ([Project(LayerBalls(radius=2.0, width=1)), kept], {"ball": Ball(norm="l2", radius=0.2)}),
        ([Project(LayerBalls(radius=2.0, width=1)), kept], {"ball": Ball(norm="linf", radius=0.3)}),
        ([Project(LayerBalls(radius=2.0, width=1)), kept], {"attack": PGD(steps=2)}),
        ([Project(LayerBalls(radius=2.0, width=1)), kept], {"loss": "margin"}),
        ([Project(LayerBalls(radius=2.0, width=1)), kept], {"batch": 5}),
        ([Project(LayerBalls(radius=2.0, width=1)), kept], {"optimizer": MOMENTUM}),
        ([Project(LayerBalls(radius=1.0, width=1)), kept], {}),
        ([kept], {}),
    ):
        with pytest.raises(AdvlabError, match="from the same run"):
            fit(net(), x, y, hooks=hooks, **settings | change)
    path.unlink()
    own = {"steps": 4, "hooks": [kept]}
    for lr in (0.1, 0.2):
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        with pytest.raises(AdvlabError, match="from the same run") if lr == 0.2 else nullcontext():
            fit(model, x, y, optimizer=optimizer, **own)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(AdvlabError, match="whole safetensors"):
        fit(net(), x, y, hooks=[Project(LayerBalls(radius=2.0, width=1)), kept], **settings)
    save_file({"w": torch.zeros(1)}, path)
    with pytest.raises(AdvlabError, match="without its checksum"):
        fit(net(), x, y, hooks=[Project(LayerBalls(radius=2.0, width=1)), kept], **settings)
    with pytest.raises(AdvlabError, match="last of the hooks"):
        fit(net(), x, y, hooks=[kept, Project(LayerBalls(radius=2.0, width=1))], **settings)


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
    probe = Probe({"w": lambda m: m[0].weight.sum()}, at={0, 3})
    seen = fit(model, x, y, steps=7, lr=0.1, hooks=[probe])
    assert seen.log.probe_steps == [0, 3, 7]
    assert float(seen.log.probe("w")[0]) == pytest.approx(float(net()[0].weight.sum().detach()))
    assert float(seen.log.probe("w")[-1]) == pytest.approx(float(model[0].weight.sum().detach()))
    table = seen.log.table(seeds=[11])
    assert table.columns == ["step", "seed", "loss", "w"]
    assert table["seed"].to_list() == [11, 11, 11]
    assert fit(net(), x, y, steps=2, lr=0.1).log.table()["step"].to_list() == [0, 1, 2]


def test_probes_at_steps_of_their_own_share_a_table():
    x, y = data()
    often = Probe({"one": lambda m: 1.0, "array": lambda m: torch.ones(3)}, every=2)
    seldom = Probe({"two": lambda m: 2.0}, at={3})
    table = fit(net(), x, y, steps=4, lr=0.1, hooks=[often, seldom]).log.table()
    assert table["step"].to_list() == [0, 2, 3, 4]
    assert table["one"].fill_nan(None).to_list() == [1, 1, None, 1]
    assert table["two"].fill_nan(None).to_list() == [None, None, 2, 2]
    assert "array" not in table.columns
    with pytest.raises(AdvlabError, match="twice"):
        fit(net(), x, y, steps=1, lr=0.1, hooks=[often, often])


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
    fit(net(), x, y, steps=3, lr=0.1, hooks=[ProgressBar()])
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
        ({"loss": "logistic", "y": torch.zeros(40)}, "-1 or \\+1"),
        ({"lr": None}, "lr, or an optimizer"),
        ({"attack": FGM()}, "a ball for the attack"),
        ({"objective": Clean(), "ball": BALL}, "inside"),
        ({"optimizer": torch.optim.LBFGS}, "by itself"),
        ({"optimizer": torch.optim.SGD(net().parameters(), lr=0.1)}, "exactly the weights"),
    ],
)
def test_bad_input_is_named(change, message):
    x, y = data()
    settings = {"x": x, "y": y, "steps": 3, "lr": 0.1} | change
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


def test_the_radius_warms_up_linearly_and_schedules_of_the_model_see_every_step():
    x, y = data()
    radii, steps = [], []

    class Radii(Hook):
        def after_gradient(self, run, info):
            radii.append(info.context.ball.radius)

    objective = Adversarial(ball=Ball(norm="l2", radius=0.8), attack=FGM(), warmup=4)
    schedule = ModelSchedule(lambda model, step: steps.append(step))
    fit(net(), x, y, steps=6, lr=0.1, objective=objective, hooks=[Radii(), schedule])
    assert radii == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.8])
    assert steps == list(range(7))


@pytest.mark.parametrize("kind", OPTIMIZERS, ids=str)
def test_optimizers_are_elementwise_so_stacks_train_as_their_members(kind):
    members = [small_network(seed).double() for seed in range(3)]
    x = torch.randn(3, 20, 5, generator=seeded(), dtype=torch.float64)
    y = torch.where(x.sum(2) > 0, 1.0, -1.0).double()
    how = {"steps": 15, "lr": 0.05, "loss": "logistic", "optimizer": kind}
    stack = Stack(members)
    fit(stack, x, y, **how)
    for r, member in enumerate(members):
        alone = copy.deepcopy(member)
        fit(alone, x[r], y[r], **how)
        for p, q in zip(alone.parameters(), stack.replicate(r).parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-9, atol=1e-11)
    with pytest.raises(AdvlabError, match="by itself"):
        fit(stack, x, y, **how | {"optimizer": torch.optim.Adafactor})


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_gradient_descent_has_the_bits_of_its_formula(momentum):
    """v <- momentum v + g, w <- w - lr v, written out."""
    x, y = data()
    model, plain = net(), net()
    optimizer = partial(torch.optim.SGD, momentum=momentum)
    fit(model, x, y, steps=20, lr=Drops(lr=0.3, at_shares=(0.5,)), optimizer=optimizer)
    speed = [torch.zeros_like(w) for w in plain.parameters()]
    for step in range(20):
        loss = cross_entropy(plain(x), y).reshape(1, -1).mean(1).sum()
        grads = torch.autograd.grad(loss, list(plain.parameters()))
        lr = 0.3 * 0.1 ** (step >= 10)
        with torch.no_grad():
            for w, g, v in zip(plain.parameters(), grads, speed, strict=True):
                v.mul_(momentum).add_(g)
                w.add_(v, alpha=-lr)
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.equal(p, q)


def test_a_fit_leaves_no_gradients_behind():
    x, y = data()
    model = fit(net(), x, y, steps=2, lr=0.1, hooks=[Penalize(L2(weight=0.1))]).model
    assert all(p.grad is None for p in model.parameters())
