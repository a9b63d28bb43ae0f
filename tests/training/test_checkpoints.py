"""Checkpoints: taken up only by the run that made them, whole or refused, all randomness inside."""

import random
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from advlab.attacks import FGM, PGD
from advlab.core.errors import AdvlabError
from advlab.threats import Ball
from advlab.training import Adversarial, Checkpoint, Clean, Hook, Mixed, Probe, StopWhen, fit
from advlab.training.checkpoints import read_state, write_state
from advlab.training.global_randomness import global_randomness, set_global_randomness

BALL = Ball(norm="l2", radius=0.3)


class Net(nn.Module):
    def __init__(self, width=8, slope=0.1, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.last = nn.Linear(5, width), nn.Linear(width, 3)
        self.slope = slope

    def forward(self, x):
        return self.last(nn.functional.leaky_relu(self.first(x), self.slope))


class Negated(Net):
    def forward(self, x):
        return -super().forward(x)


def data(seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(40, 5, generator=rng), torch.randint(0, 3, (40,), generator=rng)


def seeded(seed=7):
    return torch.Generator().manual_seed(seed)


def cubed(outputs, y):
    return nn.functional.cross_entropy(outputs, y, reduction="none") ** 3


class Killed(Exception):
    pass


class Killer(Hook):
    def __init__(self, at):
        self.at = at

    def after_gradient(self, run, info):
        if run.step == self.at:
            raise Killed

    def settings(self):
        return None


def train(path, model=None, *, killed=None, **changes):
    x, y = data()
    settings = {
        "x": x, "y": y, "steps": 6, "lr": 0.1, "batch": 16, "loss": "cross_entropy", "ball": BALL,
        "attack": FGM(), "rng": seeded(), "hooks": [],
    } | changes  # fmt: skip
    kept = [] if path is None else [Checkpoint(path, every=2)]
    hooks = [Killer(killed), *settings.pop("hooks"), *kept]
    given = settings.pop("x"), settings.pop("y")
    return fit(model or Net(), *given, hooks=hooks, **settings)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "run.safetensors"
    with pytest.raises(Killed):
        train(path, killed=5)
    return path.read_bytes()


@pytest.fixture
def path(stored, tmp_path):
    (tmp_path / "run.safetensors").write_bytes(stored)
    return tmp_path / "run.safetensors"


def flipped(y):
    return (y + 1) % 3


CHANGES = {
    "data: x": (None, {"x": data(2)[0]}),
    "data: y": (None, {"y": flipped(data()[1])}),
    "settings: loss": (None, {"loss": "margin"}),
    "settings: loss of ": (None, {"loss": cubed}),
    "layer first (Linear)": (partial(Net, 9), {}),
    "another model: Net": (partial(Net, slope=0.2), {}),
    "types of the weights": (lambda: Net().double(), {"x": data()[0].double()}),
    "initial weights changed; seed them": (partial(Net, seed=1), {}),
    "other code: ": (Negated, {}),
    "settings: rng": (None, {"rng": seeded(8)}),
    "settings: objective": (
        None,
        {"objective": Clean(), "loss": None, "ball": None, "attack": None},
    ),
    "settings: ball": (None, {"ball": Ball(norm="linf", radius=0.3)}),
    "settings: attack": (None, {"attack": PGD(steps=2)}),
    "settings: lr": (None, {"lr": 0.2}),
    "settings: steps": (None, {"steps": 7}),
    "settings: batch": (None, {"batch": 8}),
    "settings: optimizer": (None, {"optimizer": torch.optim.Adam}),
    "settings: hooks": (None, {"hooks": [Probe({"one": lambda m: 1.0})]}),
}


@pytest.mark.parametrize("said", CHANGES)
def test_another_run_is_refused_in_one_line_that_says_what_differs(path, said):
    make, changes = CHANGES[said]
    before = path.read_bytes()
    with pytest.raises(AdvlabError) as error:
        train(path, make() if make else None, **changes)
    text = str(error.value)
    assert text.startswith("a checkpoint must come from the same run; got one made ")
    assert (
        said.removesuffix(" of ")
        .replace("data: ", "other data: ")
        .replace("settings: ", "other settings: ")
        in text
    )
    assert "\n" not in text
    assert path.read_bytes() == before


def test_the_same_run_goes_on_with_the_same_bits(path):
    again, whole = train(path), train(None)
    assert torch.equal(again.log.losses(), whole.log.losses())


FITS = [name for name in CHANGES if name not in ("layer first (Linear)",)]


@pytest.mark.parametrize("said", FITS)
def test_reuse_goes_on_with_a_warning(path, said):
    make, changes = CHANGES[said]
    start = read_state(path)
    with pytest.warns(UserWarning, match="going on from a checkpoint made") as warned:
        result = train(path, make() if make else None, reuse=True, **changes)
    assert len(warned) == 1
    assert result.steps == changes.get("steps", 6)
    kept = start["log"]["loss"]
    assert torch.equal(result.log.losses()[: len(kept)], kept.to(result.log.losses()))


def test_reuse_by_the_hook_and_where_it_cannot_be(path):
    x, y = data(2)
    settings = {"steps": 6, "lr": 0.1}
    with pytest.warns(UserWarning, match="x, y differ"):
        fit(Net(), x, y, hooks=[Checkpoint(path, reuse=True)], **settings)
    for model, steps, words in (
        (Net(9), 6, r"first.weight of shape \(9, 5\); got \(8, 5\)"),
        (Net(), 3, "at most 3 steps; got one of 6"),
    ):
        with pytest.raises(AdvlabError, match=words):
            train(path, model, reuse=True, steps=steps)


def test_a_bit_flip_anywhere_is_detected(path):
    whole = path.read_bytes()
    state = read_state(path)
    draw = random.Random(0)
    header = 8 + int.from_bytes(whole[:8], "little")
    places = [draw.randrange(8 * header) for _ in range(150)]
    places += [draw.randrange(8 * header, 8 * len(whole)) for _ in range(100)]
    lines = []
    for place in [*range(64), *places]:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(AdvlabError) as error:
            read_state(path)
        lines += str(error.value).splitlines()
    assert len(lines) == 64 + len(places)
    path.write_bytes(whole[:-1])
    with pytest.raises(AdvlabError, match="whole"):
        train(path)
    path.write_bytes(whole)
    assert read_state(path)["step"] == state["step"]


class Random(nn.Module):
    """Dropout, and noise from the global generator of numpy."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        np.random.seed(4)
        self.net = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        return self.net(x + 0.1 * np.random.normal())


def test_global_randomness_goes_on_with_the_same_bits(tmp_path):
    whole = train(None, Random())
    path = tmp_path / "run.safetensors"
    with pytest.raises(Killed):
        train(path, Random(), killed=5)
    model = Random()
    torch.rand(100), np.random.rand(100)
    again = train(path, model)
    assert torch.equal(again.log.losses(), whole.log.losses())
    for p, q in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(p, q)


def test_every_global_generator_comes_back(tmp_path):
    # Python's by itself: the type checks of the tests draw from it.
    def draw():
        return random.gauss(0, 1), float(np.random.normal()), float(torch.rand(()))

    draw()
    write_state(tmp_path / "state.safetensors", global_randomness())
    kept = read_state(tmp_path / "state.safetensors")
    set_global_randomness(kept)
    first = draw()
    assert draw() != first
    set_global_randomness(kept)
    assert draw() == first


class Tied(nn.Module):
    """One weight in two places, and one that nothing uses."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.out = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 3)
        self.b.weight = self.a.weight
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.out(self.b(torch.relu(self.a(x))))


def test_tied_and_unused_weights_train_and_checkpoint(tmp_path):
    path = tmp_path / "run.safetensors"
    whole = train(None, Tied())
    with pytest.raises(Killed):
        train(path, Tied(), killed=5)
    again = train(path, Tied())
    assert torch.equal(again.log.losses(), whole.log.losses())
    assert again.model.a.weight is again.model.b.weight
    assert torch.equal(again.model.unused, torch.ones(2))
    for name in ("a", "b", "out"):
        assert not torch.equal(getattr(again.model, name).bias, getattr(Tied(), name).bias)


@pytest.mark.parametrize("every", [0, -1])
def test_every_is_a_whole_number(every, tmp_path):
    for make in (
        lambda: Checkpoint(tmp_path / "c.safetensors", every=every),
        lambda: Probe({}, every=every),
        lambda: StopWhen(lambda m: False, every=every),
    ):
        with pytest.raises(AdvlabError, match="every must be"):
            make()


def test_a_place_that_cannot_be_written_is_refused_before_the_first_step(tmp_path):
    (tmp_path / "file").write_text("")
    seen = []
    count = Probe({"seen": lambda m: seen.append(1) or 0.0})
    for place in (tmp_path / "file" / "run.safetensors", tmp_path):
        with pytest.raises(AdvlabError, match="must be a file that can be written"):
            train(place, hooks=[count])
    assert seen == []


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    import safetensors
    import safetensors.torch

    def full(*_):
        raise safetensors.SafetensorError("No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(AdvlabError, match="No space left on device"):
        train(tmp_path / "run.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("killed", [None, 3])
def test_a_model_comes_back_in_the_mode_in_which_it_came(killed):
    model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.1), nn.Linear(8, 3))
    model.eval()
    model[1].train()
    seen = []
    watch = Probe({"mode": lambda m: seen.append([one.training for one in m.modules()]) or 0.0})
    with pytest.raises(Killed) if killed else nullcontext():
        train(None, model, killed=killed, hooks=[watch])
    assert [one.training for one in model.modules()] == [False, False, True, False]
    assert all(all(modes) for modes in seen)


def test_states_come_back(tmp_path):
    path = tmp_path / "state.safetensors"
    shared = torch.arange(6.0)
    state = {"a": [shared, shared, shared[2:]], 1: {"x": None, "y": True}, "z": "text"}
    write_state(path, state)
    found = read_state(path)
    assert found[1] == state[1]
    for one, other in zip(found["a"], state["a"], strict=True):
        assert torch.equal(one, other)


def test_objectives_with_a_ball_name_it(path):
    objective = Adversarial(ball=BALL, attack=FGM())
    short = {"loss": None, "ball": None, "attack": None}
    train(path, objective=objective, **short)
    with pytest.raises(AdvlabError, match="settings: objective"):
        train(path, objective=Mixed(ball=BALL, attack=FGM()), **short)
