"""Parts of installed packages: found by name, imported when used, after ours."""

import sys
import textwrap

import numpy as np
import pytest
import torch
from attack_specimens import inputs, loss_for

from advlab.attacks import ATTACKS, PGD
from advlab.certify import CERTIFICATES, certify
from advlab.cli import main
from advlab.core.errors import AdvlabError
from advlab.data import DATA
from advlab.evaluation import plan
from advlab.papers import select
from advlab.threats import Ball

PACKAGE = """
import torch
from advlab.attacks import Attack
from advlab.certify import IBP
from advlab.data import from_arrays

class Corner(Attack):
    '''One corner of the set.'''

    def search(self, best, threat, rng):
        best.value(threat.maximiser(torch.ones_like(best.x), best.x))

class Intervals(IBP):
    name = "their_intervals"

def toy(directory=None, split="test"):
    return from_arrays([[0.0, 1.0], [1.0, 0.0]] * 3, [0, 1] * 3)

def not_arrays(directory=None, split="test"):
    return 3
"""
ENTRIES = """
[advlab.attacks]
corner = their_package.parts:Corner
pgd = their_package.parts:Corner
broken = their_package.missing:Corner
no_attack = their_package.parts:toy

[advlab.certificates]
their_intervals = their_package.parts:Intervals

[advlab.data]
toy = their_package.parts:toy
no_arrays = their_package.parts:not_arrays

[advlab.experiments]
their_figure = their_package.figure
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package as pip would leave it: its modules, and a dist-info folder beside them."""
    folder, info = tmp_path / "their_package", tmp_path / "their_package-1.0.dist-info"
    folder.mkdir()
    info.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "parts.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(textwrap.dedent(ENTRIES))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield folder
    for name in [one for one in sys.modules if one.startswith("their_package")]:
        del sys.modules[name]


def test_names_of_installed_packages_are_found_and_imported_when_used(package):
    assert "corner" in ATTACKS
    assert "corner" in ATTACKS.names()
    assert "corner" not in list(ATTACKS)
    assert "their_package.parts" not in sys.modules
    chosen = plan("corner")
    assert "their_package.parts" in sys.modules
    found = chosen.members["Corner"](loss_for(PGD, 0), inputs(0), Ball("linf", 0.1), rng=0)
    assert found.x.shape == inputs(0).shape
    assert ATTACKS.source("corner") == "their_package.parts:Corner"


def test_names_of_ours_come_first(package):
    assert ATTACKS["pgd"] is PGD
    assert ATTACKS.source("pgd") is None
    assert ATTACKS.names().count("pgd") == 1


def test_certificates_data_and_experiments_too(package):
    net, x = torch.nn.Linear(2, 2).double(), torch.rand(3, 2, dtype=torch.float64)
    y = net(x).argmax(1)
    ball = Ball("linf", 0.01)
    theirs = certify(net, x, y, ball, ["their_intervals"])
    assert torch.equal(theirs.bound, certify(net, x, y, ball, ["ibp"]).bound)
    assert "their_intervals" not in list(CERTIFICATES)
    assert len(DATA["toy"]().x) == 6
    assert select("their_figure") == ["their_package.figure"]


def test_the_command_line_knows_them(package, capsys):
    (package / "net.py").write_text("import torch\nnet = torch.nn.Linear(2, 2)\n")
    line = [
        "attack",
        "their_package.net:net",
        "toy",
        "--eps",
        "0.1",
        "--attack",
        "corner",
        "--json",
    ]
    with pytest.raises(SystemExit) as stop:
        main([*line, "--no-checks", "--out", "out"])
    assert not stop.value.code, capsys.readouterr().err
    made = (package.parent / "out" / "evaluation.json").read_text()
    assert "their_package.parts:Corner" in made


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("broken", r"broken of their-package can be imported.*No module.*uninstall their-package"),
        ("no_attack", "a subclass of Attack at the entry point no_attack of advlab.attacks"),
        ("nothing", r"the name of a suite or an attack; got 'nothing'.*corner"),
    ],
)
def test_what_cannot_be_used_is_one_line(package, name, words):
    with pytest.raises(AdvlabError, match=words) as refused:
        plan(name)
    assert "\n" not in str(refused.value)


def test_data_that_are_no_arrays_are_one_line(package, capsys):
    np.savez("x.npz", x=np.zeros((2, 2)), y=np.zeros(2, dtype=int))
    (package / "net.py").write_text("import torch\nnet = torch.nn.Linear(2, 2)\n")
    with pytest.raises(SystemExit) as stop:
        main(["attack", "their_package.net:net", "no_arrays", "--eps", "0.1"])
    assert stop.value.code == 2
    assert "Arrays from the data set no_arrays; got int" in capsys.readouterr().err
