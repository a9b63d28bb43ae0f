"""The house: the order of rooms, the rule of rooms, names that stand once, whole experiments."""

import ast
import importlib
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from house import FILES, PACKAGES, ROOT, defined_in, imports, reached, room, tree

from advlab.lab import About
from advlab.papers import EXPERIMENTS, ITEMS

ROOMS = [
    "core",
    "threats",
    "losses",
    "data",
    "models",
    "attacks",
    "certify",
    "evaluation",
    "training",
    "measure",
    "theory",
    "linear",
    "reductions",
    "report",
    "lab",
    "papers",
    "testing",
    "cli",
]
INNER = [module for module in FILES if module not in ("advlab", "advlab.__main__")]


def top_room(module: str) -> str:
    return room(module).split("/")[0]


def test_the_import_reader_reads():
    assert ("advlab.core.config", "Config") in imports("advlab.lab.case")
    assert defined_in("advlab.threats", "Ball") == "advlab.threats.ball"
    assert "advlab.threats.ball" in reached(["advlab.papers.benign.experiments.fig2"])
    assert "advlab.cli.run" not in reached(["advlab.papers.benign.experiments.fig2"])


def test_every_file_is_in_a_room_and_imports_only_from_earlier_rooms():
    upward = []
    for module in INNER:
        here = ROOMS.index(top_room(module))
        for source, name in imports(module):
            target = f"{source}.{name}" if f"{source}.{name}" in FILES else source
            if target in INNER and ROOMS.index(top_room(target)) > here:
                upward.append(f"{module} imports {target}")
    assert upward == []


def test_the_rooms_are_there_and_contributing_lists_them():
    package = Path(__file__).parents[1] / "src" / "advlab"
    there = {place.stem for place in package.iterdir() if not place.name.startswith((".", "_"))}
    assert {*ROOMS} == there - {"py"}
    text = (package.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.search(r"Rooms in import order: (.*?)\.", text, re.DOTALL)
    assert listed is not None
    assert re.findall(r"\w+", listed[1]) == ROOMS


def test_papers_do_not_import_each_other():
    across = [
        f"{module} imports {source}"
        for module in INNER
        for source, _ in imports(module)
        if source in INNER
        and room(module).startswith("papers/")
        and room(source).startswith("papers/")
        and room(module) != room(source)
    ]
    assert across == []


def test_report_and_theory_never_import_torch():
    quiet = [
        module
        for module in INNER
        if room(module) in ("report", "theory", "linear") or ".theory" in module
    ]
    assert len(quiet) > 40
    loud = [m for m in quiet for source, _ in imports(m) if source.split(".")[0] == "torch"]
    assert loud == []


def test_no_assert_no_bare_except_no_pickle():
    found = []
    for module in FILES:
        for node in ast.walk(tree(module)):
            bare = isinstance(node, ast.ExceptHandler) and node.type is None
            if isinstance(node, ast.Assert) or bare:
                found.append(f"{module}:{node.lineno}")
        sources = {source for source, _ in imports(module)}
        found += [f"{module}: {bad}" for bad in {"pickle", "cloudpickle", "torch.load"} & sources]
    assert found == []


# The rule of rooms: what one paper alone reaches lives in that paper; the second user promotes it.

PRACTICE = ("attacks", "certify", "evaluation", "training", "cli", "diagnose")
"""Rooms that people use on their own models: what these reach has a user besides the papers."""

FOR_EVERYBODY = {
    "measure": "what any trained model shows: public, though one paper reaches it today",
    "linear": "closed forms of linear models are a public room",
    "models": "image networks are for users; the experiments on images will train them",
    "threats": "sets are for users; caps have one paper today",
    "testing": "laws for the parts of users",
}
NOT_YET_REACHED: dict[str, str] = {}


def users() -> dict[str, set[str]]:
    found = defaultdict(set)
    for paper in ITEMS:
        for module in reached(EXPERIMENTS[f"{paper}/{item}"] for item in ITEMS[paper]):
            found[module].add(paper)
    for module in reached(module for module in INNER if top_room(module) in PRACTICE):
        found[module].add("practice")
    return found


def test_what_one_paper_alone_reaches_lives_in_that_paper():
    found, wrong = users(), []
    for module in INNER:
        home, by = room(module), found[module]
        shared = not home.startswith("papers") and home not in ("core", "report", "lab", "cli")
        if module in PACKAGES or not shared or home in FOR_EVERYBODY:
            continue
        if by != {"practice"} and len(by) < 2:
            wrong.append(f"{module} is reached by {sorted(by) or 'nobody'} only")
    assert wrong == []


def test_what_lives_in_a_paper_is_reached_by_its_experiments_alone():
    found, wrong = users(), []
    for module in INNER:
        home = room(module)
        if module in PACKAGES or not home.startswith("papers/") or module in NOT_YET_REACHED:
            continue
        if found[module] != {home.removeprefix("papers/")}:
            wrong.append(f"{module} is reached by {sorted(found[module]) or 'nobody'}")
    assert wrong == []
    assert [module for module in NOT_YET_REACHED if found.get(module)] == []


def test_no_file_name_twice_in_a_room():
    names = Counter(
        (room(module), FILES[module].name) for module in INNER if module not in PACKAGES
    )
    assert [key for key, count in names.items() if count > 1] == []


def test_no_public_class_name_twice_in_the_package():
    where = defaultdict(list)
    for module in INNER:
        for node in tree(module).body:
            # Each experiment has a class Case of its own: a contract, like `compute`.
            own = isinstance(node, ast.ClassDef) and node.name == "Case" and ".exp" in module
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not own:
                where[node.name].append(module)
    assert {name: homes for name, homes in where.items() if len(homes) > 1} == {}


# Words: a reader of the package, the docs or a report can open whatever they cite.

UNSHIPPED = re.compile(r"\b(the digest|digest's|spec \d|CGRO spec|DESIGN(\.md)?)\b")


def test_nothing_cites_a_document_that_is_not_shipped():
    project = Path(__file__).parents[1]
    texts = [*ROOT.rglob("*.py"), *ROOT.rglob("*.md"), *(project / "docs").rglob("*.md")]
    texts += [project / "README.md", project / "CONTRIBUTING.md"]
    cited = [f"{p.name}: {m.group()}" for p in texts for m in UNSHIPPED.finditer(p.read_text())]
    assert cited == []


@pytest.mark.parametrize("paper", ITEMS)
def test_every_paper_has_its_page_and_every_file_it_names_is_there(paper):
    page = ROOT / "papers" / paper / "README.md"
    folders = "data|models|theory|measures|reductions|experiments"
    named = re.findall(rf"[`(]((?:{folders})/[\w/]+\.py)[`)]", page.read_text())
    assert named
    assert [name for name in named if not (page.parent / name).is_file()] == []


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_complete(name):
    module = importlib.import_module(EXPERIMENTS[name])
    assert module.__doc__
    assert isinstance(module.ABOUT, About)
    assert {"smoke", "laptop"} <= set(module.ABOUT.seconds)
    # A label is the claim's name inside its experiment; the full id has the experiment in front.
    assert not [label for label in module.ABOUT.claims if label.startswith(name.split("/")[0])]
    for function in ("recipe", "compute", "figure", "verdicts"):
        assert callable(getattr(module, function))
    for scale in module.ABOUT.seconds:
        keys = [case.key() for case in module.recipe(scale)]
        assert len(set(keys)) == len(keys) > 0
