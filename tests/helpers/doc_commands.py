"""What is wrong with a command of the docs: it is read by the real command line, and not run."""

import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer
from doc_blocks import Command, commands
from typer.core import TyperGroup
from typer.main import get_command

from advlab import lab
from advlab.attacks import ATTACKS
from advlab.cli import app, examples
from advlab.cli.training_plan import TrainingPlan
from advlab.core.errors import AdvlabError
from advlab.data.directory import data_set
from advlab.data.published import SETS
from advlab.evaluation.suites import plan
from advlab.models import NETWORKS
from advlab.papers import EXPERIMENTS, select

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

PLACEHOLDERS = {
    "NAME": "generalization/fig5",
    "NAME...": "generalization/fig5",
    "N": "1",
    "DIR": "runs",
    "RUNS": "runs",
    "HOST:PORT": "head:6379",
    "...": "",
}
"""Words that stand for what a reader puts there, with a value that fits."""

OWN = {
    "my_figure.py",
    "path/to/my_figure.py",
    "my_package.my_figure",
    "shrinking_margin",  # an entry point of docs/extend.md
    "shrinking_margin.py",
    "sign_steps",
    "my_set",
    "mine.toml",
    "run",  # a folder that `advlab train` left
}
"""Experiments, attacks, data, recipes and models of a reader's own, by the names the pages use."""

KEPT = {
    ("git", "clone"),
    ("source", ".venv/bin/activate"),
    ("pre-commit", "install"),
    ("ruff", "check"),
    ("ruff", "format"),
}
"""Commands of other programs that are believed."""


_NOT_ALL = ("MissingParameter", "BadOptionUsage")
"""What the parser says of `advlab run` or `advlab train --data` alone."""


class Wrong(Exception):
    """A command of the docs that would not work."""


def trouble(command: Command) -> str:
    """What is wrong with a command, or nothing."""
    words = [PLACEHOLDERS.get(word, word) for word in command.words]
    words = [word for word in words if word]
    while words and re.fullmatch(r"[A-Z_]+=\S+", words[0]):
        words = words[1:]
    program = re.sub(r"^\.venv[\w-]*/bin/", "", words[0])
    try:
        if program not in PROGRAMS:
            raise Wrong(f"{program!r} is no program that the docs use")
        if program == "advlab":
            _advlab(words[1:], command.inline)
        else:
            PROGRAMS[program](words[1:])
    except (Wrong, AdvlabError, typer.TyperException) as error:
        said = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        return " ".join(said.split()) or type(error).__name__
    return ""


def parsed(words: list[str], partly: bool = False) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The verbs of an `advlab` command and its options and arguments, by advlab's own parser.

    Callbacks of the frame are not called: `--install-completion` would do so.

    Args:
        words: what stands behind `advlab`.
        partly: what a verb needs may be missing.
    """
    command: Any = get_command(app)
    verbs: tuple[str, ...] = ()
    while isinstance(command, TyperGroup):
        context = command.context_class(command, info_name="advlab")
        _, words, _ = command.make_parser(context).parse_args(list(words))
        if not words:
            return verbs, {}
        name, command, words = command.resolve_command(context, words)
        verbs = (*verbs, str(name))
    try:
        return verbs, command.make_context(verbs[-1], list(words)).params
    except typer.TyperException as error:
        if partly and type(error).__name__ in _NOT_ALL:
            return verbs, {}
        raise


def named(words: list[str]) -> list[str]:
    """The experiments that an `advlab run` or `advlab list` is about; none of other commands."""
    verbs, given = parsed(words, partly=True)
    if verbs not in (("run",), ("list",)) or not given:
        return []
    names = [name for name in given["names"] or () if name not in OWN]
    chosen = select(*names)
    unknown = [name for name in chosen if name not in EXPERIMENTS]
    if unknown:
        raise Wrong(f"no experiment {', '.join(unknown)}")
    return chosen


def estimate(words: list[str]) -> float | None:
    """The seconds that an `advlab run`, or all those of a `make`, take; None of other commands."""
    program = re.sub(r"^\.venv[\w-]*/bin/", "", words[0])
    if program == "make":
        found = [estimate(one.words) for one in recipe(words[1])]
        return sum(one for one in found if one is not None) or None
    if program != "advlab" or words[1:2] != ["run"]:
        return None
    words = [PLACEHOLDERS.get(word, word) for word in words[1:]]
    chosen = named(words)
    if not chosen:
        return None
    _, given = parsed(words)
    return sum(lab.load(name).estimate(given["scale"], given["seeds"]) for name in chosen)


def recipe(target: str) -> Iterator[Command]:
    """The commands of a target of the Makefile."""
    found = re.search(rf"^{re.escape(target)}:[^\n]*\n((?:\t[^\n]*\n)*)", MAKEFILE, re.M)
    if found is None:
        raise Wrong(f"no target {target} in the Makefile")
    yield from commands(found[1].replace("\t", "").replace("$(BIN)", ".venv/bin"))


def _advlab(words: list[str], partly: bool = False) -> None:
    if "--help" in words:
        words = [word for word in words if word != "--help"]
        partly = True
    verbs, given = parsed(words, partly)
    if not given:
        return
    named(words)
    if verbs in VALUES and not (partly and verbs == ("train",) and given["model"] is None):
        VALUES[verbs](given)


def _judged(given: dict[str, Any]) -> None:
    """Of `advlab attack` and `advlab compare`: the threat set, the attack, the data."""
    _threat(given)
    _suite(given["attack"])
    _own(given["data"], SETS, "data")
    for name in ("model", "a", "b"):
        _own(given.get(name), (), "model")


def _trained(given: dict[str, Any]) -> None:
    """Of `advlab train`: network, data, recipe with its settings, the evaluation."""
    if given["resume"] is not None:
        return
    _threat(given)
    _own(given["model"], NETWORKS, "network")
    _own(given["data"], SETS, "data")
    if given["attack"] != "none":
        _suite(given["attack"])
    recipe = "pgd" if given["recipe"] in OWN else given["recipe"]
    options = {name: given[name] for name in TrainingPlan.model_fields if name in given}
    TrainingPlan.of(**{**options, "recipe": recipe})


def _threat(given: dict[str, Any]) -> None:
    if given["eps"] is not None:
        examples.number(given["eps"], "eps")
    if given["box"] is not None:
        examples.box(given["box"])


def _suite(name: str) -> None:
    if ":" not in name and name not in OWN:
        plan(name)
        ATTACKS.source(name)


def _own(name: str | None, ours: Any, what: str) -> None:
    """A name is ours, or looks like a file or an object of the reader's."""
    if name is not None and name not in ours and name not in OWN and not re.search(r"[:./]", name):
        raise Wrong(f"no {what} {name}")


def _against(given: dict[str, Any]) -> None:
    """`advlab verify --against` names a store that is in the repository."""
    store = given["against"]
    if store is not None and not (ROOT / store).is_dir():
        raise Wrong(f"no folder {store}")


VALUES: dict[tuple[str, ...], Callable[[dict[str, Any]], Any]] = {
    ("attack",): _judged,
    ("compare",): _judged,
    ("train",): _trained,
    ("verify",): _against,
    ("data", "fetch"): lambda given: data_set(given["name"]),
}


def _make(words: list[str]) -> None:
    for word in words:
        name, equals, _ = word.partition("=")
        pattern = rf"^{name} \??=|\$\({name}\)" if equals else rf"^{re.escape(word)}:"
        if not re.search(pattern, MAKEFILE, re.M):
            raise Wrong(f"no {'variable' if equals else 'target'} {name} in the Makefile")


def _python(words: list[str]) -> None:
    if words == ["-c"]:
        return None  # a sentence names the option
    if words[:1] == ["-c"]:
        try:
            compile(words[1], "python -c", "exec")
        except SyntaxError as error:
            raise Wrong(f"python -c: {error}") from None
    elif words[:1] == ["-m"]:
        if words[1] == "advlab":
            return _advlab(words[2:])
        found = None
        with suppress(ModuleNotFoundError):
            found = find_spec(words[1])
        if found is None:
            raise Wrong(f"no module {words[1]}")
    elif not words or not (ROOT / words[0]).is_file():
        raise Wrong(f"no script {' '.join(words[:1])}")
    return None


def _pip(words: list[str]) -> None:
    if words[:1] != ["install"]:
        raise Wrong(f"pip {' '.join(words[:1])}")
    given, extras = iter(words[1:]), PROJECT["project"]["optional-dependencies"]
    for word in given:
        if word in ("-c", "-r", "--constraint", "--requirement"):
            file = next(given, "")
            if not (ROOT / file).is_file():
                raise Wrong(f"no file {file}")
        found = re.fullmatch(r"(?:advlab|\.)\[([\w,]+)\]", word)
        missing = [extra for extra in found[1].split(",") if extra not in extras] if found else []
        if missing:
            raise Wrong(f"no extra {', '.join(missing)}")


def _pytest(words: list[str]) -> None:
    lines = PROJECT["tool"]["pytest"]["ini_options"]["markers"]
    marks = [line.partition(":")[0] for line in lines]
    for option, value in pairwise(words):
        if option == "-m" and value not in marks:
            raise Wrong(f"no marker {value}")


def _torchrun(words: list[str]) -> None:
    _python(words[words.index("-m") :] if "-m" in words else [])


def _believed(program: str) -> Callable[[list[str]], None]:
    def check(words: list[str]) -> None:
        if (program, *words[:1]) not in KEPT:
            raise Wrong(f"{program} {' '.join(words[:1])}")

    return check


PROGRAMS: dict[str, Callable[..., None]] = {
    "advlab": _advlab,
    "make": _make,
    "python": _python,
    "pip": _pip,
    "pytest": _pytest,
    "torchrun": _torchrun,
    "cd": lambda words: None,
    "pyright": lambda words: None,
    **{program: _believed(program) for program, _ in KEPT},
}
