"""Work goes where it counts, fits in memory, and goes on where it was stopped."""

import importlib.util
import json
import random
import sys

import evaluated_nets as nets
import pytest
import torch
from torch import nn

import advlab
from advlab.attacks import FGM, PGD, AutoAttack, Identity, MemberResult, Transfer
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.evaluation import memory, plan
from advlab.evaluation.batch import evaluate_batch
from advlab.evaluation.evaluation import total
from advlab.evaluation.outcomes import Outcomes
from advlab.evaluation.suites import Plan
from advlab.threats import Ball

BALL = Ball(norm="linf", radius=0.15, box=(0.0, 1.0))
TIMES = {"certificates_tried", "seconds", "certifying_seconds"}


def without_times(numbers: dict) -> dict:
    members = [{k: v for k, v in one.items() if k not in TIMES} for one in numbers["members"]]
    return {**{k: v for k, v in numbers.items() if k not in TIMES}, "members": members}


def test_each_attack_meets_only_what_is_left():
    x, y = nets.blobs()
    model = nets.trained()
    chosen = Plan("two", {"first": FGM(), "second": PGD(steps=10)})
    rows = evaluate_batch(model, x, y, BALL, chosen, ["ibp"], generator("test"))
    with torch.no_grad():
        wrong = int((model(x).argmax(1) != y).sum())
    clean, first, second = rows.members
    assert (clean.rows, clean.broken, clean.forwards) == (120, wrong, 120)
    certified = int((rows.bound < 0).sum())
    assert certified > 0
    assert first.rows == 120 - wrong - certified  # interval bounds cost nothing: they come first
    assert second.rows == first.rows - first.broken
    assert second.forwards <= 14 * second.rows
    assert rows.broken_by.count("second") == second.broken
    assert int(rows.broken.sum()) == wrong + first.broken + second.broken


def test_certified_rows_cannot_be_broken_by_the_strongest_attack():
    x, y = nets.blobs()
    model = nets.trained()
    rows = evaluate_batch(model, x, y, BALL, plan(Identity()), None, generator("test"))
    safe = rows.bound < 0
    assert 0 < int(safe.sum()) < len(x)
    found = AutoAttack(steps=20, queries=200).run(
        advlab.losses.ModelLoss(model, y[safe], advlab.losses.margin), x[safe], BALL,
        rng=generator("test"),
    )[0]  # fmt: skip
    assert bool((found.loss < 0).all())


def test_the_members_of_an_ensemble_find_what_the_ensemble_finds():
    x, y = nets.blobs()
    ensemble = AutoAttack(steps=20, queries=200)
    loss = advlab.losses.ModelLoss(nets.trained(), y, advlab.losses.margin)
    together = ensemble(loss, x, BALL, rng=generator("test")).loss >= 0
    found = advlab.evaluate(nets.trained(), x, y, BALL, ensemble, certificates=(), checks=False)
    assert abs(found.robust_error - float(together.double().mean())) <= 1 / 120
    assert [member.name for member in found.members] == ["clean", *ensemble.members()]


def test_accounts_add_up_by_name():
    one, two = MemberResult("a", 3, 1, 0.5, 10, 5), MemberResult("a", 4, 2, 0.5, 1, 1)
    other = MemberResult("b", 2, 0, 1.0, 7, 0)
    assert total([one, other, two]) == (MemberResult("a", 7, 3, 1.0, 11, 6), other)


def test_bytes_per_row_are_those_of_the_activations():
    """Two more tanh layers of width h save two more outputs of h doubles a row."""
    x = torch.zeros(4, 5, dtype=torch.float64)

    def net(layers: int, width: int) -> nn.Module:
        inner = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.Tanh())]
        return nn.Sequential(nn.Linear(5, width), nn.Tanh(), *inner).double()

    for width in (50, 200):
        more = memory.bytes_per_row(net(3, width), x) - memory.bytes_per_row(net(1, width), x)
        assert more == 2 * width * 8


def test_batches_fit_the_memory_there_is(monkeypatch):
    x, _ = nets.blobs(3000)
    model = nets.trained()
    assert memory.batch_size(model, x) == 750
    assert memory.batch_size(model, x[:700]) == 512
    row = memory.bytes_per_row(model, x)
    monkeypatch.setattr(memory, "free_bytes", lambda device: int(40 * row))
    assert memory.batch_size(model, x) == 10
    monkeypatch.setattr(memory, "free_bytes", lambda device: 0)
    assert memory.batch_size(model, x) == 1


def test_the_result_does_not_depend_on_the_batch_size_of_an_attack_without_chance():
    x, y = nets.blobs()
    results = [
        advlab.evaluate(nets.trained(), x, y, BALL, FGM(), batch=size, checks=False)
        for size in (7, 120)
    ]
    assert results[0].broken_by == results[1].broken_by
    assert (results[0].batch, results[1].batch) == (7, 120)


class Stopping(nn.Module):
    """The trained network, which pulls the plug after some passes."""

    def __init__(self, passes: int):
        super().__init__()
        self.net, self.passes = nets.trained(), iter(range(passes))  # no plain value: not its own

    def forward(self, x):
        if next(self.passes, None) is None:
            raise KeyboardInterrupt
        return self.net(x)


def test_a_stopped_evaluation_goes_on_to_the_same_result(tmp_path):
    x, y = nets.blobs()
    settings = {"attack": PGD(steps=8), "batch": 25, "rng": None}
    whole = advlab.evaluate(Stopping(10**9), x, y, BALL, **settings)
    for passes in (60, 30):
        with pytest.raises(KeyboardInterrupt):
            advlab.evaluate(Stopping(passes), x, y, BALL, **settings, store=tmp_path)
    done = sorted(path.name for path in tmp_path.glob("batch-*"))
    assert 1 <= len(done) < 5
    assert not list(tmp_path.glob(".*"))
    resumed = advlab.evaluate(Stopping(10**9), x, y, BALL, **settings, store=tmp_path)
    assert without_times(resumed.numbers()) == without_times(whole.numbers())
    for one, other in zip(resumed.examples, whole.examples, strict=True):
        assert torch.equal(one.perturbed, other.perturbed)
    assert json.loads(json.dumps(resumed.numbers()))["n"] == 120


def test_batches_of_other_settings_are_refused(tmp_path):
    x, y = nets.blobs()
    advlab.evaluate(nets.trained(), x, y, BALL, FGM(), store=tmp_path, checks=False)
    with pytest.raises(AdvlabError, match="other settings: attacks differs"):
        advlab.evaluate(nets.trained(), x, y, BALL, PGD(), store=tmp_path, checks=False)


class Sign(nn.Module):
    """The trained network times a number: the same weights, other answers."""

    def __init__(self, sign: float = 1.0):
        super().__init__()
        self.net, self.sign = nets.trained(), sign

    def forward(self, x):
        return self.sign * self.net(x)


class Negated(Sign):
    def forward(self, x):
        return -super().forward(x)


def function(sign):
    net = nets.trained().eval()
    return lambda x: sign * net(x)


class Tanh(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.net = nets.trained()
        for name, layer in self.net.named_modules():
            if isinstance(layer, nn.ReLU):
                self.net.set_submodule(name, act)

    def forward(self, x):
        return self.net(x)


def stored(store, model=None, data=None, ball=BALL, attack=None, **settings):
    x, y = nets.blobs(60) if data is None else data
    settings = {"batch": 25, "checks": False, "certificates": (), **settings}
    return advlab.evaluate(model or Sign(), x, y, ball, attack or FGM(), store=store, **settings)


OTHERS = {
    "made by other code: class Negated, forward of Negated changed": {"model": Negated()},
    "another model: Sign changed": {"model": Sign(-1.0)},
    "layer net.": {"model": Tanh(nn.Tanh())},
    "another model: a lambda of function": {"model": function(-1.0)},
    "other data: x differs": {"data": (nets.blobs(60)[0].flip(1), nets.blobs(60)[1])},
    "other data: y differs": {"data": (nets.blobs(60)[0], nets.blobs(60)[1].flip(0))},
    "other settings: threat set": {"ball": Ball(norm="linf", radius=0.1, box=(0.0, 1.0))},
    "other settings: attacks": {"attack": Transfer(source=Negated(), inner=FGM())},
    "other settings: certificates": {"certificates": ("ibp",)},
    "other settings: batch": {"batch": 20},
    "other settings: seed": {"rng": generator("other")},
}


@pytest.mark.parametrize("said", OTHERS)
def test_batches_of_another_evaluation_are_refused_and_named(tmp_path, said):
    first = {}
    if said.startswith("layer"):
        first = {"model": Tanh(nn.ReLU())}
    elif "lambda" in said:
        first = {"model": function(1.0)}
    elif "attacks" in said:
        first = {"attack": Transfer(source=Sign(), inner=FGM())}
    stored(tmp_path, **first)
    with pytest.raises(AdvlabError) as error:
        stored(tmp_path, **OTHERS[said])
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_batches_of_another_evaluation_are_kept_if_asked(tmp_path, capsys):
    own = stored(tmp_path)
    other = stored(tmp_path, model=function(1.0), reuse=True)
    assert other.broken_by == own.broken_by
    assert "they are kept, as reuse asks" in capsys.readouterr().err
    with pytest.raises(AdvlabError, match="or keep them with reuse"):
        stored(tmp_path, model=function(1.0))


def test_a_forward_that_was_rewritten_is_evaluated_anew(tmp_path):
    """The same file, class and weights: only the sign in forward is another."""
    text = "from evaluated_nets import trained\nfrom torch import nn\nclass Net(nn.Module):\n"
    text += "    def __init__(self):\n        super().__init__()\n        self.net = trained()\n"
    text += "    def forward(self, x):\n        return self.net(x)\n"
    path = tmp_path / "own_net.py"

    def net(written):
        path.write_text(written)
        spec = importlib.util.spec_from_file_location("own_net", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.Net()

    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        own = stored(tmp_path / "store", net(text))
        assert stored(tmp_path / "store", net(text + "# a remark\n")).broken_by == own.broken_by
        with pytest.raises(AdvlabError, match="made by other code: forward of Net changed;"):
            stored(tmp_path / "store", net(text.replace("return ", "return -")))
    finally:
        sys.dont_write_bytecode = before


def test_a_damaged_batch_is_evaluated_again_with_a_line_on_stderr(tmp_path, capsys):
    whole = without_times(stored(tmp_path).numbers())
    path = tmp_path / "batch-00000025.safetensors"
    kept = path.read_bytes()
    draw = random.Random(0)
    for _ in range(12):
        damaged = bytearray(kept)
        damaged[draw.randrange(len(kept))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        capsys.readouterr()
        assert without_times(stored(tmp_path).numbers()) == whole
        assert f"note: {path} is damaged; its rows are evaluated again" in capsys.readouterr().err
    stored(tmp_path)
    assert "damaged" not in capsys.readouterr().err


def test_a_damaged_note_is_written_anew(tmp_path, capsys):
    whole = without_times(stored(tmp_path).numbers())
    about = tmp_path / "about.json"
    text = about.read_text()
    for damaged in (text[:-5], text.replace('"batch": 25', '"batch": 35'), "[]", "{}"):
        assert damaged != text
        about.write_text(damaged)
        assert without_times(stored(tmp_path).numbers()) == whole
        assert "about.json is damaged" in capsys.readouterr().err
        assert about.read_text() == text


def test_rows_come_back_from_disk_as_they_were(tmp_path):
    x, y = nets.blobs()
    rows = evaluate_batch(nets.trained(), x, y, BALL, plan(FGM()), (), generator("test"))
    again = Outcomes.read(rows.tensors(), rows.notes())
    assert again.labels() == rows.labels()
    assert again.members == rows.members


def test_every_example_shown_is_broken_and_within_reach():
    x, y = nets.blobs()
    model = nets.trained()
    found = advlab.evaluate(model, x, y, BALL, PGD(), batch=50, checks=False)
    assert 0 < len(found.examples) <= 8
    margins = [one.margin for one in found.examples]
    assert margins == sorted(margins, reverse=True)
    for one in found.examples:
        assert torch.equal(one.original, x[one.row])
        assert bool(BALL.contains(one.perturbed[None], one.original[None]))
        assert int(model(one.perturbed[None]).argmax()) == one.wrong_answer != one.label
        assert one.answer == one.label == int(y[one.row])


def test_names_of_attacks_and_suites():
    assert list(plan("standard").members)[-1] == "Square"
    assert plan("pgd").members == {"PGD": PGD()}
    with pytest.raises(AdvlabError, match="there are fast, standard"):
        plan("unknown")
    with pytest.raises(AdvlabError, match="transfer needs source"):
        plan("transfer")
