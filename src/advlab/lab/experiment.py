"""An experiment end to end: sweep, then table, then figure and verdicts, then one result file."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from ..core.errors import AdvlabError
from ..core.fingerprint import code_fingerprint
from ..report import Result, Verdict, undecide
from . import provenance
from .backends import BackendName
from .backends import backend as backend_of
from .case import About, Case, Computed, Scale, check_seeds
from .loader import find, name
from .local import Limits
from .origin import own_folder
from .store import ReadOnly, Store
from .sweep import Swept, sweep

_NAMES = ("ABOUT", "recipe", "compute", "figure", "verdicts")


@dataclass(frozen=True)
class Experiment:
    """A figure file's names, and where they came from."""

    name: str
    source: str | None
    text: str
    about: About
    recipe: Callable[..., list[Any]]
    compute: Callable[[Any], pl.DataFrame | Computed]
    figure: Callable[[pl.DataFrame], Any]
    verdicts: Callable[[pl.DataFrame], list[Verdict]]

    def cases(self, scale: str, seeds: int | None = None) -> list[Case]:
        """The recipe's cases; without `seeds`, as many seeds as the scale asks for."""
        if scale not in self.about.seconds:
            raise AdvlabError(f"a scale of {self.name}: {', '.join(self.about.seconds)}", scale)
        if seeds is not None:
            check_seeds(seeds, lambda few: len(self.recipe(scale, few)))
        return self.recipe(scale, seeds)

    def code(self, scale: Scale) -> str:
        """The fingerprint of the code that computes its cases."""
        return code_fingerprint(self.compute, *{type(case) for case in self.cases(scale)})

    def estimate(self, scale: Scale, seeds: int | None = None) -> float:
        """Seconds for the whole recipe, in proportion to the cost of the cases."""
        usual = sum(case.cost for case in self.cases(scale))
        return self.about.seconds[scale] * sum(c.cost for c in self.cases(scale, seeds)) / usual


def load(source: str) -> Experiment:
    """The experiment of a registered name, a module or a .py file.

    Args:
        source: "paper/item" for what comes with advlab, "package.module", "package.module:object",
            or "path/to/file.py".

    Example:
        load("benign/fig1").about.claims
    """
    if source.endswith(".py"):
        source = str(Path(source).resolve())
    module = find(source)
    missing = [wanted for wanted in _NAMES if not hasattr(module, wanted)]
    if missing:
        raise AdvlabError(
            f"an experiment with the names {', '.join(_NAMES)}",
            f"{source} without {', '.join(missing)}",
        )
    return Experiment(
        name=name(source),
        source=source,
        text=inspect.getdoc(module) or "",
        about=module.ABOUT,
        recipe=module.recipe,
        compute=module.compute,
        figure=module.figure,
        verdicts=module.verdicts,
    )


def run(
    experiment: str | Experiment,
    *,
    scale: Scale = "laptop",
    seeds: int | None = None,
    jobs: int | None = None,
    out: Path | str = "runs",
    fresh: bool = False,
    reuse: bool = False,
    backend: BackendName = "local",
    address: str | None = None,
    timeout: float | None = None,
    memory: int | None = None,
) -> Result:
    """Compute what is missing, decide the claims, and leave `<out>/<name>/result-<scale>.json`.

    Where a file or module of the same name from elsewhere has that folder already, the name gets a
    hash of the source's path. Where everything is stored already, a read-only disk is enough; then
    no result is left.

    Args:
        experiment: its name ("benign/fig1"), a module or .py file of your own, or what `load` gave.
        scale: "smoke", "laptop" or "paper".
        seeds: replicates; as many as the scale asks for if left out.
        jobs: worker processes; as many as there are cores if left out.
        out: the folder that holds all runs.
        fresh: forget the stored runs of these cases first.
        reuse: keep stored runs that other code computed or that were made from other data, which
            else are computed again.
        backend: "local", or "ray" for a Ray cluster.
        address: the Ray cluster to join.
        timeout: seconds that a case may take.
        memory: bytes that the process of a case may hold in memory.

    Returns:
        Verdicts, chart, settings, and where they came from.

    Example:
        lab.run("generalization/fig5", scale="smoke", out="runs").verdicts
    """
    if isinstance(experiment, str):
        experiment = load(experiment)
    cases = experiment.cases(scale, seeds)
    if not cases:
        raise AdvlabError("a recipe with at least one case", f"{experiment.name} at {scale}: none")
    backend_of(backend, jobs, address, Limits(timeout, memory))  # mistakes leave no folder behind
    own = own_folder(Path(out), experiment.name, experiment.source)
    experiment, folder = replace(experiment, name=own), Path(out) / own
    swept = sweep(
        cases,
        experiment.compute,
        folder,
        jobs=jobs,
        fresh=fresh,
        reuse=reuse,
        source=experiment.source,
        backend=backend,
        address=address,
        timeout=timeout,
        memory=memory,
    )
    about = experiment.about
    result = Result(
        experiment=experiment.name,
        paper=about.paper,
        item=about.item,
        title=about.title,
        about=experiment.text,
        scale=scale,
        seeds=len({seed for case in cases for seed in case.seeds}),
        cases=len(cases),
        failed=swept.failed,
        settings=_settings(cases),
        seconds=round(swept.seconds, 3),
        versions=provenance.versions(),
        commit=provenance.commit(),
        finished=provenance.now(),
        source=experiment.source or "",
        runs=swept.runs,
        made_by=swept.made_by,
        verdicts=_decide(experiment, swept, scale),
        chart=_draw(experiment, swept),
    )
    _write(result, Store(folder))
    return result


def _write(result: Result, store: Store) -> None:
    kind = f"result-{result.scale}"
    try:
        with store.lock(kind, -1.0):
            store.write_json(kind, Path(f"{kind}.json"), result.sealed())
    except ReadOnly:
        print(f"{store.root} is read-only: nothing was written", file=sys.stderr, flush=True)


def _decide(experiment: Experiment, swept: Swept, scale: str) -> list[Verdict]:
    verdicts = _despite_gaps(experiment.verdicts, swept)
    if verdicts is None:
        verdicts = [
            Verdict(id=id, claim=claim, outcome="undecided", measured=None, rule="too few runs")
            for id, claim in experiment.about.claims.items()
        ]
    if scale == "smoke":
        verdicts = [undecide(verdict, "smoke scale decides nothing") for verdict in verdicts]
    if swept.failed:
        gap = f"{len(swept.failed)} cases failed and are not in it"
        verdicts = [
            verdict.model_copy(update={"note": "; ".join(filter(None, (verdict.note, gap)))})
            for verdict in verdicts
        ]
    return verdicts


def _draw(experiment: Experiment, swept: Swept) -> dict[str, Any]:
    with alt.data_transformers.enable("default", max_rows=None):
        return _despite_gaps(lambda table: experiment.figure(table).to_dict(), swept) or {}


def _despite_gaps(read: Callable[[pl.DataFrame], Any], swept: Swept) -> Any:
    """What `read` makes of the table; None where failed cases left it too little to read."""
    if swept.table.is_empty():
        return None
    try:
        return read(swept.table)
    except Exception:
        if not swept.failed:
            raise
        return None


def _settings(cases: list[Case]) -> dict[str, Any]:
    """Each setting's value, or the list of its values where cases differ; without the seeds."""
    seen: dict[str, list[Any]] = {}
    for case in cases:
        for field, value in case.model_dump(mode="json", exclude={"seed", "replicates"}).items():
            values = seen.setdefault(field, [])
            if value not in values:
                values.append(value)
    return {field: values[0] if len(values) == 1 else values for field, values in seen.items()}
