"""Names of objects and of code: the same for the same, another for others, in every process."""

import importlib
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from advlab.core import reachable
from advlab.core.fingerprint import code_fingerprint, digest
from advlab.core.reachable import definitions


class Wrapper:
    """An ordinary wrapper that knows itself and the one that holds it."""

    def __init__(self, model, parent=None):
        self.model, self.parent, self.me = model, parent, self
        self.children = [Wrapper(model, self)] if parent is None else []

    def __call__(self, x):
        return self.model(x)


class Holder(nn.Module):
    """A network whose part holds the whole: its state_dict would never end."""

    def __init__(self, weight: float = 1.0):
        super().__init__()
        self.net = nn.Linear(2, 2)
        nn.init.constant_(self.net.weight, weight)
        nn.init.zeros_(self.net.bias)
        self.net.owner = self


def net(weight: float = 1.0) -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    nn.init.constant_(model[0].weight, weight)
    nn.init.zeros_(model[0].bias)
    return model


@pytest.mark.parametrize("make", [lambda w: Wrapper(net(w)), Holder], ids=["object", "module"])
def test_cycles_end_and_weights_still_count(make):
    assert digest(make(1.0)) == digest(make(1.0))
    assert digest(make(1.0)) != digest(make(2.0))


def test_a_function_that_closes_over_itself():
    def make(scale):
        def again(x, depth=0):
            return x if depth else again(scale * x, 1)

        return again

    assert digest(make(1.0)) == digest(make(1.0))
    assert digest(make(1.0)) != digest(make(2.0))


def test_a_dense_web_of_objects_is_walked_once():
    web = [Wrapper(None, parent=1) for _ in range(60)]
    for one in web:
        one.children = web
    digest(web[0])


def test_sharing_an_object_is_no_difference():
    weight = torch.ones(3)
    assert digest([weight, weight]) == digest([torch.ones(3), torch.ones(3)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.zeros(4), torch.zeros(2, 2)),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (np.zeros(5000), np.eye(1, 5000, 2500)[0]),
        ([torch.zeros(1)], [torch.ones(1)]),
        ({"a": 1}, {"a": 2}),
        (partial(max, 1), partial(max, 2)),
        (nn.ReLU(), nn.Tanh()),
        (net(1.0), net(2.0)),
        (net().forward, net(2.0).forward),
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: (lambda y: y + 1)(x), lambda x: (lambda y: y + 2)(x)),
    ],
)
def test_others_have_other_names(one, other):
    assert digest(one) == digest(one)
    assert digest(one) != digest(other)


def test_functions_inside_functions_have_the_same_name_in_every_process():
    code = (
        "from functools import partial; from advlab.core.fingerprint import digest;"
        "print(digest(lambda x: [(lambda y: y * n)(x) for n in range(3)]), digest(partial(max, 1)))"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        for _ in range(2)
    }
    assert len(found) == 1
    assert found != {""}


EXPERIMENT = '''
"""What it is about."""
import math
from helper import scaled  # from beside it
from charts import draw
import acts  # for what it does

FACTOR = 2
COLOUR = "red"


class Case:
    """Settings."""
    x: float = 1.0


def compute(case):
    """The rows."""
    rows = _rows(case)
    def late():
        from lazy import finish
        return finish(rows)
    return late()


def _rows(case):
    points = [FACTOR * scaled(case.x)]  # a comment
    return points


def points():
    return COLOUR


def figure(table):
    return draw(_coloured(table), points())


def _coloured(table):
    return table, COLOUR


def verdicts(table):
    return [table]
'''
FILES = {
    "experiment.py": EXPERIMENT,
    "helper.py": "import deep\ndef scaled(x): return deep.shift(x)\ndef unused(): return 1\n",
    "deep.py": "def shift(x): return x + 1\n",
    "lazy.py": "def finish(x): return x\n",
    "acts.py": "import math\nmath.own_constant = 2.0\n",
    "charts.py": "def draw(*x): return x\n",
}
NOT_REACHED = [
    ("experiment.py", "# a comment", "# another one"),
    ("experiment.py", '"""The rows."""', '"""The rows, told better."""'),
    ("experiment.py", '"""What it is about."""', '"""Another text."""'),
    ("experiment.py", "def _rows(case):\n", "def _rows(\n    case,\n):\n\n"),
    ("experiment.py", 'COLOUR = "red"', 'COLOUR = "blue"'),
    ("experiment.py", "return table, COLOUR", "return table, COLOUR, 1"),
    ("experiment.py", "return draw(", "return 1, draw("),
    ("experiment.py", "return [table]", "return []"),
    ("helper.py", "return 1", "return 2"),
    ("charts.py", "return x", "return x, x"),
]
REACHED = [
    ("experiment.py", "FACTOR = 2", "FACTOR = 3"),
    ("experiment.py", "x: float = 1.0", "x: float = 2.0"),
    ("experiment.py", "FACTOR * scaled", "FACTOR + scaled"),
    ("experiment.py", "finish(rows)", "finish(rows[:1])"),
    ("helper.py", "deep.shift(x)", "deep.shift(2 * x)"),
    ("deep.py", "x + 1", "x + 2"),
    ("lazy.py", "return x", "return -x"),
    ("experiment.py", "from charts import draw\n", "from charts import draw\nprint(draw)\n"),
    ("experiment.py", "def _rows", "import functools\n@functools.cache\ndef _rows"),
    ("experiment.py", "rows = _rows(case)", "rows = globals()['_rows'](case)"),
    ("acts.py", "2.0", "3.0"),
]


@pytest.fixture
def fingerprint(tmp_path, monkeypatch):
    """The fingerprint of the files with one change, as a new process would see it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def of(changed=None) -> str:
        for name in FILES:
            sys.modules.pop(name.removesuffix(".py"), None)
        for function in (reachable._module, reachable._path, reachable._installed):
            function.cache_clear()
        importlib.invalidate_caches()
        for name, text in FILES.items():
            if changed and changed[0] == name:
                assert changed[1] in text
                text = text.replace(changed[1], changed[2])
            (tmp_path / name).write_text(text)
        module = importlib.import_module("experiment")
        return code_fingerprint(module.compute, module.Case)

    return of


@pytest.mark.parametrize("changed", NOT_REACHED)
def test_what_cannot_change_a_result_does_not_count(fingerprint, changed):
    assert fingerprint(changed) == fingerprint()


@pytest.mark.parametrize("changed", REACHED)
def test_what_compute_reaches_counts(fingerprint, changed):
    assert fingerprint(changed) != fingerprint()


def test_another_process_gives_the_same(fingerprint, tmp_path):
    here = fingerprint()
    code = (
        "import experiment as e; from advlab.core.fingerprint import code_fingerprint;"
        "print(code_fingerprint(e.compute, e.Case))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == [here]


def test_functions_made_by_functions():
    def decorated(function):
        return lambda case: function(case)

    def one(case):
        return 1

    other = importlib.import_module("advlab.losses").margin
    assert code_fingerprint(decorated(one)) != code_fingerprint(decorated(other))
    assert code_fingerprint(partial(one, 1)) != code_fingerprint(partial(one, 2))


def test_what_is_held_of_an_installed_package_counts_by_its_name():
    def using(held):
        return lambda case: held(case)

    found = definitions(using(nn.Linear))
    assert "name torch.nn.modules.linear Linear" in found
    assert not [line for line in found if line.startswith("torch")]
    assert found != definitions(using(nn.Bilinear))


def test_code_without_a_file():
    space: dict = {}
    exec("def one(x): return x + 1\ndef two(x): return x + 2", space)
    assert code_fingerprint(space["one"]) != code_fingerprint(space["two"])


def reached(name: str) -> set[str]:
    module = importlib.import_module(f"advlab.papers.{name}")
    kinds = {type(case) for case in module.recipe("smoke")}
    return {line.split()[0] for line in definitions(module.compute, *kinds)}


def test_an_experiment_reaches_its_parts_and_neither_the_report_nor_the_lab():
    found = reached("cgro.experiments.network_attacks")
    assert {"advlab.training.loop", "advlab.threats.ball", "advlab.losses"} <= found
    rooms = {name.split(".")[1] for name in found}
    assert not rooms & {"report", "lab", "cli"}


@pytest.mark.parametrize("name", ["generalization.experiments.fig5", "cgro.experiments.race"])
def test_every_function_that_runs_is_reached(name):
    """Run the smallest case and look which functions of advlab were called."""
    module = importlib.import_module(f"advlab.papers.{name}")
    cases = module.recipe("smoke")
    called = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(reachable.ROOT)):
            called.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        module.compute(min(cases, key=lambda case: case.cost))
    finally:
        sys.setprofile(before)
    found = definitions(module.compute, *{type(case) for case in cases})
    checked = 0
    for code in called:
        path = code.co_filename.removeprefix(f"{reachable.ROOT}/").removesuffix(".py")
        dotted = "advlab." + path.replace("/", ".").removesuffix(".__init__")
        if dotted.startswith("advlab.lab") or code.co_name == "<module>":
            continue
        here = reachable._module(dotted)
        for statement in {*here.always, *(s for many in here.definers.values() for s in many)}:
            first = min([statement.lineno, *(d.lineno for d in decorators(statement))])
            if first <= code.co_firstlineno <= statement.end_lineno:
                checked += 1
                assert f"{here.label} {here._describe(statement).hash}" in found, code
    assert checked > 20


def decorators(statement):
    return getattr(statement, "decorator_list", [])
