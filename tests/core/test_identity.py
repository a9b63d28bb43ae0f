"""What a result rests on: every part that can change it counts, by name, in every process."""

import copy
import functools
import importlib.util
import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from advlab.core.identity import Fingerprint, differences

FILE = '''
import functools
import torch
from torch import nn

SCALE = 2.0
MEAN = torch.tensor([0.5, 0.25])
CONFIG = {"shift": 0.0}


def scaled(x):
    """Scaled."""
    return SCALE * (x - MEAN)


def unrelated(x):
    return x


class Base(nn.Module):
    def prepare(self, x):
        return scaled(x)


class Net(Base):
    """A network."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.act, self.slope = nn.Linear(2, 2), nn.ReLU(), 0.1
        self.last = lambda x: x + 1
        self.register_buffer("count", torch.zeros(1))

    @torch.no_grad()
    def forward(self, x):
        # towards the scores
        return self.last(self.act(self.first(self.prepare(x)))) + CONFIG["shift"]


class Other:
    value = 1


def make(factor):
    return lambda x: factor * Net()(x)


@functools.cache
def cached(n):
    return n


def function(x):
    return cached(1) * NET(x)


NET = Net()
'''


def load(folder, text=FILE, name="own_model"):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parts(model) -> dict[str, str]:
    found = Fingerprint()
    found.model(model)
    return found.parts()


def changed(tmp_path, old, new, get=lambda module: module.Net()) -> str:
    assert old in FILE
    were = parts(get(load(tmp_path)))
    (tmp_path / "again").mkdir()
    return differences(were, parts(get(load(tmp_path / "again", FILE.replace(old, new)))))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("return self.last(", "return -self.last(", "made by other code: forward of Net changed"),
        ("nn.ReLU()", "nn.Tanh()", "layer act (Tanh)"),
        ("x: x + 1", "x: x + 2", "a lambda of Net.__init__"),
        ("(x - MEAN)", "(x + MEAN)", "made by other code: scaled changed"),
        ("SCALE = 2.0", "SCALE = 3.0", "made by other code: SCALE changed"),
        ("[0.5, 0.25]", "[0.5, 0.2]", "made by other code: MEAN changed"),
        ('{"shift": 0.0}', '{"shift": 1.0}', "made by other code: CONFIG changed"),
        ("return scaled(x)", "return x", "prepare of Base"),
        ("0.1\n", "0.2\n", "made with another model: Net changed"),
        ("torch.zeros(1)", "torch.ones(1)", "weights"),
        ("manual_seed(0)", "manual_seed(1)", "weights"),
        ("@torch.no_grad()", "@torch.enable_grad()", "forward of Net"),
    ],
)
def test_what_a_network_computes_counts_and_is_named(tmp_path, old, new, said):
    assert said in changed(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# towards the scores", "# a remark\n"),
        ('"""Scaled."""', '"""Scaled and moved."""\n'),
        ('"""A network."""', ""),
        ("return SCALE * (x - MEAN)", "return (\n        SCALE\n        * (x - MEAN)\n    )"),
        ("def unrelated(x):\n    return x", "def unrelated(x):\n    return -x"),
        ("value = 1", "value = 2"),
    ],
)
def test_what_cannot_change_an_answer_does_not_count(tmp_path, old, new):
    assert changed(tmp_path, old, new) == ""


@pytest.mark.parametrize(
    ("get", "old", "new"),
    [
        (lambda m: m.make(2.0), "factor * Net", "-factor * Net"),
        (lambda m: m.make(2.0), "return self.last(", "return -self.last("),
        (lambda m: m.function, "cached(1) * NET", "cached(2) * NET"),
        (lambda m: m.function, "return n", "return -n"),
        (lambda m: m.function, "manual_seed(0)", "manual_seed(1)"),
        (lambda m: partial(m.function), "cached(1) * NET", "NET"),
        (lambda m: m.Net().forward, "nn.ReLU()", "nn.Tanh()"),
    ],
)
def test_functions_are_known_by_what_they_reach(tmp_path, get, old, new):
    assert changed(tmp_path, old, new, get) != ""


def test_closures_settings_types_and_modes(tmp_path):
    module = load(tmp_path)
    assert differences(parts(module.make(2.0)), parts(module.make(3.0))) != ""
    assert differences(parts(module.make(2.0)), parts(module.make(2.0))) == ""
    net = module.Net()
    were = parts(net)
    assert differences(were, parts(copy.deepcopy(net))) == ""
    assert "mode (train or eval)" in differences(were, parts(copy.deepcopy(net).eval()))
    assert "types of the weights" in differences(were, parts(copy.deepcopy(net).double()))
    other = copy.deepcopy(net)
    other.forward = lambda x: -x
    assert differences(were, parts(other)) != ""
    other = copy.deepcopy(net)
    other.register_forward_hook(lambda module, x, y: -y)
    assert differences(were, parts(other)) != ""
    assert differences(parts(nn.Conv2d(1, 1, 3)), parts(nn.Conv2d(1, 1, 3, stride=2))) != ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["script", "trace", "fx", "export", "compile"])
def test_programs_are_known_by_their_code(how):
    def program(act):
        torch.manual_seed(0)
        net, x = nn.Sequential(nn.Linear(2, 2), act).eval(), torch.zeros(1, 2)
        return {
            "script": lambda: torch.jit.script(net),
            "trace": lambda: torch.jit.trace(net, x),
            "fx": lambda: torch.fx.symbolic_trace(net),
            "export": lambda: torch.export.export(net, (x,)).module(),
            "compile": lambda: torch.compile(net),
        }[how]()

    were = parts(program(nn.ReLU()))
    assert differences(were, parts(program(nn.ReLU()))) == ""
    assert differences(were, parts(program(nn.Tanh()))) != ""


def test_two_lambdas_in_one_line_are_two():
    one, two = (lambda x: x), (lambda x: -x)
    assert differences(parts(one), parts(two)) != ""


def test_tied_weights_are_not_two_equal_ones():
    def net(tied):
        layers = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        layers[1].weight = layers[0].weight if tied else nn.Parameter(layers[0].weight.detach())
        for p in layers.parameters():
            nn.init.ones_(p)
        return layers

    assert differences(parts(net(True)), parts(net(True))) == ""
    assert differences(parts(net(True)), parts(net(False))) != ""


def test_a_file_that_changed_after_its_import_is_not_what_runs(tmp_path):
    module = load(tmp_path)
    were = parts(module.Net())
    load(tmp_path, FILE.replace("return self.last(", "return -self.last("), "own_model")
    # A new walk over the old class: its code is the old one, whatever the file says now.
    now = parts(module.Net())
    again = parts(load(tmp_path, name="own_model_2").Net())
    assert differences(were, again) == ""
    assert "forward of Net" not in differences(were, now)


def test_every_process_gives_the_same(tmp_path):
    load(tmp_path)
    code = (
        "import json, torch, own_model as m; from advlab.core.identity import Fingerprint\n"
        "found = Fingerprint(); found.model(m.Net()); one = found.parts()\n"
        "found = Fingerprint(); found.model(m.make(2.0)); two = found.parts()\n"
        "found = Fingerprint(); found.versions(); found.add('data: x', {'b', 'a', 'c'}, m.MEAN)\n"
        "print(json.dumps([one, two, found.parts()]))"
    )
    command = [sys.executable, "-c", code]
    done = [
        json.loads(subprocess.run(command, capture_output=True, check=True, cwd=tmp_path).stdout)
        for _ in range(2)
    ]
    assert done[0] == done[1]
    module = load(tmp_path)
    assert done[0][0] == parts(module.Net())
    assert done[0][1] == parts(module.make(2.0))
    assert done[0][2]["versions: torch"] == torch.__version__


class Cyclic(nn.Module):
    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.net, self.me = nn.Linear(2, 2), [self]
        self.behind = lambda z: self.net(z)
        self.net.owner = self


def test_cycles_end():
    assert differences(parts(Cyclic(0)), parts(Cyclic(0))) == ""
    assert differences(parts(Cyclic(0)), parts(Cyclic(1))) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.zeros(4), torch.zeros(2, 2)),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(9), torch.eye(1, 9)[0]),
        (torch.zeros(2).to_sparse(), torch.ones(2).to_sparse()),
        (np.zeros(5000), np.eye(1, 5000, 2500)[0]),
        (torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)),
        (np.random.default_rng(1), np.random.default_rng(2)),
        ({"a": 1}, {"a": 2}),
        (1, True),
        (1, 1.0),
        ("1", 1),
        (None, "None"),
        (functools.partial(max, 1), functools.partial(max, 2)),
    ],
)
def test_values_count_by_content(one, other):
    def part(value):
        found = Fingerprint()
        found.add("data: x", value)
        return found.parts()

    assert part(one) == part(copy.deepcopy(one))
    assert differences(part(one), part(other)) == "made with other data: x differs"


def test_differences_say_it_in_one_line():
    were = {"code: f": "1", "data: x": "1", "data: y": "1", "versions: torch": "2.6"}
    now = {"code: f": "2", "data: x": "2", "data: y": "2", "versions: torch": "2.7"}
    assert differences(were, now) == (
        "made by other code: f changed; made with other data: x, y differ; "
        "made by other versions: torch 2.6, now 2.7, differs"
    )
    many = {f"settings: {name}": "1" for name in "abcdef"}
    assert differences({}, many) == "made with other settings: a, b, c, d and 2 more differ"
