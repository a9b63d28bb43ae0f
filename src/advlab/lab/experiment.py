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
from ..report import Assumption, Result, Scope, Verdict, put_outside, undecide
from ..report.rules import missing
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
    assumptions: Callable[[pl.DataFrame], list[Assumption]] | None = None

    def cases(self, scale: str, seeds: int | None = None) -> list[Case]:
        """The recipe's cases; without `seeds`, as many seeds as the scale asks for.

        Their seeds are moved to where no earlier look has been (`About.looks`).
        """
        if scale not in self.about.seconds:
            raise AdvlabError(f"a scale of {self.name}: {', '.join(self.about.seconds)}", scale)
        if seeds is not None:
            check_seeds(seeds, lambda few: len(self.recipe(scale, few)))
        first = self.about.first_seed(scale)
        cases = self.recipe(scale, seeds)
        if not first:
            return cases
        return [case.model_copy(update={"seed": first + case.seed}) for case in cases]

    def code(self, scale: Scale) -> str:
        """The fingerprint of the code that computes its cases."""
        return code_fingerprint(self.compute, *{type(case) for case in self.cases(scale)})

    def pace(self, scale: Scale) -> float:
        """Seconds of a case of cost 1, as `About.seconds` has them for the whole recipe."""
        return self.about.seconds[scale] / sum(case.cost for case in self.cases(scale))

    def estimate(self, scale: Scale, seeds: int | None = None) -> float:
        """Seconds for the whole recipe, in proportion to the cost of the cases."""
        return self.pace(scale) * sum(case.cost for case in self.cases(scale, seeds))


def load(source: str) -> Experiment:
    """The experiment of a registered name, a module or a .py file.

    Args:
        source: "paper/item" for what comes with advlab, "package.module", "package.module:object",
            or "path/to/file.py". It has five names, and `assumptions(table)` if its claims need
            some: the conditions of the paper and what the runs reached of them.

    Example:
        from advlab.lab import load
        load("benign/fig1").about.claims
    """
    if source.endswith(".py"):
        source = str(Path(source).resolve())
    module = find(source)
    without = [wanted for wanted in _NAMES if not hasattr(module, wanted)]
    if without:
        raise AdvlabError(
            f"an experiment with the names {', '.join(_NAMES)}",
            f"{source} without {', '.join(without)}",
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
        assumptions=getattr(module, "assumptions", None),
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
    progress: bool = True,
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
        progress: whether to say how far it is, and how long what is missing takes.

    Returns:
        Verdicts, chart, settings, and where they came from.

    Example:
        from advlab import lab
        lab.run("generalization/fig5", scale="smoke", out="runs").verdicts
    """
    if isinstance(experiment, str):
        experiment = load(experiment)
    cases = experiment.cases(scale, seeds)
    if not cases:
        raise AdvlabError("a recipe with at least one case", f"{experiment.name} at {scale}: none")
    backend_of(backend, jobs, address, Limits(timeout, memory))  # mistakes leave no folder behind
    _check_data(experiment.about.data if scale != "smoke" else ())
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
        pace=experiment.pace(scale),
        progress=progress,
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
        cpu=round(swept.cpu, 3),
        memory=swept.memory,
        versions=provenance.versions(),
        machine=provenance.machine(),
        commit=provenance.commit(),
        finished=provenance.now(),
        source=experiment.source or "",
        runs=swept.runs,
        made_by=swept.made_by,
        verdicts=_decide(experiment, swept, scale, _sizes(cases)),
        chart=_draw(experiment, swept),
    )
    _write(result, Store(folder))
    return result


def _check_data(names: tuple[str, ...]) -> None:
    """Refuse to begin without data sets that the cases need."""
    if names:
        from ..data.recorded import check_there  # it imports torch, as whatever reads data does

        for one in names:
            check_there(one)


def _write(result: Result, store: Store) -> None:
    kind = f"result-{result.scale}"
    try:
        with store.lock(kind, -1.0):
            store.write_json(kind, Path(f"{kind}.json"), result.sealed())
    except ReadOnly:
        print(f"{store.root} is read-only: nothing was written", file=sys.stderr, flush=True)


def _decide(
    experiment: Experiment, swept: Swept, scale: Scale, sizes: dict[str, Any]
) -> list[Verdict]:
    verdicts = _despite_gaps(experiment.verdicts, swept)
    about = experiment.about
    if verdicts is None:
        verdicts = [missing(id, claim, "too few runs") for id, claim in about.claims.items()]
    read = experiment.assumptions
    reached = (_despite_gaps(read, swept) if read else None) or []
    scope = Scope(
        assumptions=reached,
        sizes=sizes,
        reduced=about.reduced.get(scale, ""),
        looks=about.looks,
    )
    order = {label: place for place, label in enumerate(about.claims)}
    # Words such as "and on more than half" go on with the claim before.
    verdicts = sorted(verdicts, key=lambda one: order.get(one.id, len(order)))
    verdicts = [
        within_scope(verdict, scope, about.claims[verdict.id].needs)
        if verdict.id in about.claims
        else verdict.model_copy(update={"scope": scope})
        for verdict in verdicts
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


def within_scope(verdict: Verdict, scope: Scope, needs: tuple[str, ...] = ()) -> Verdict:
    """The verdict with its scope; outside, if an assumption that its claim needs does not hold.

    What the verdict itself says about its assumptions comes first: an experiment may decide a
    claim on those of its runs that meet them.

    Args:
        verdict: what a rule said.
        scope: how far the runs reach.
        needs: names of assumptions.
    """
    own = verdict.scope.assumptions
    here = scope.model_copy(update={"assumptions": own}) if own else scope
    known = {one.name: one for one in here.assumptions}
    unknown = [name for name in needs if name not in known]
    if unknown and known:
        raise AdvlabError(f"an assumption of {verdict.id}: {', '.join(known)}", ", ".join(unknown))
    broken = [known[name] for name in needs if name in known and known[name].holds is False]
    verdict = verdict.model_copy(update={"scope": here})
    if not broken:
        return verdict
    reached = "; ".join(
        f"{one.name} needs {one.condition}"
        + ("" if one.reached is None else f", reached {one.reached:.3g}")
        for one in broken
    )
    return put_outside(verdict, reached)


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


def _sizes(cases: list[Case]) -> dict[str, Any]:
    """What a scope says of the settings: numbers and names, and how many seeds."""
    plain = (int, float, str)
    sizes = {
        field: value
        for field, value in _settings(cases).items()
        if isinstance(value, plain)
        or (isinstance(value, list) and all(isinstance(one, plain) for one in value))
    }
    return {"seeds": len({seed for case in cases for seed in case.seeds}), **sizes}
