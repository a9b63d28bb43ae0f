"""advlab list: what can be run."""

import json
from typing import Annotated

import typer


def completed(incomplete: str) -> list[str]:
    """Names of experiments and papers that begin like this, for the shell's completion.

    Also without their paper: `run` takes such a name, or says which papers have it.
    """
    from ..papers import EXPERIMENTS, ITEMS

    items = dict.fromkeys(item for items in ITEMS.values() for item in items)
    return [name for name in (*ITEMS, *items, *EXPERIMENTS) if name.startswith(incomplete)]


def list_experiments(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names, papers or globs; all of them if left out.", autocompletion=completed
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """Show the experiments and their times at laptop scale; of named ones all times and claims.

    Examples:

    \b
      advlab list
      advlab list generalization/fig5
      advlab list generalization --json
      advlab list my_figure.py
    """
    from .. import lab
    from ..papers import EXPERIMENTS, select

    experiments = [lab.load(name) for name in select(*(names or EXPERIMENTS))]
    if as_json:
        typer.echo(json.dumps([_entry(experiment) for experiment in experiments], indent=1))
        return
    (_print_claims if names else _print_table)(experiments)


def _entry(experiment) -> dict:
    about = experiment.about
    return {
        "name": experiment.name,
        "paper": about.paper,
        "item": about.item,
        "title": about.title,
        "scales": list(about.seconds),
        "seconds": about.seconds,
        "claims": {
            f"{experiment.name}/{id}": {"claim": claim.words, "kind": claim.kind}
            for id, claim in about.claims.items()
        },
    }


def _print_table(experiments: list) -> None:
    """A row per experiment; long titles go on below themselves, so names stay in their column."""
    from rich.console import Console
    from rich.table import Table

    from ..core.progress import duration

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("experiment", no_wrap=True, style="bold")
    table.add_column("what it shows")
    table.add_column("laptop", no_wrap=True, justify="right", style="dim")
    for one in experiments:
        seconds = one.about.seconds.get("laptop")
        table.add_row(one.name, one.about.title, "" if seconds is None else duration(seconds))
    total = sum(one.about.seconds.get("laptop", 0) for one in experiments)
    table.add_row("all", f"{len(experiments)} experiments, on two cores", duration(total))
    Console(highlight=False).print(table)


def _print_claims(experiments: list) -> None:
    """Each experiment with its times, and its claims below it: fits a narrow terminal."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from ..core.progress import duration

    console = Console(highlight=False)
    for experiment in experiments:
        about = experiment.about
        line = Text(f"{experiment.name}  ", style="bold")
        console.print(line.append(f"{about.title} ({about.item})", style="default"))
        times = ", ".join(f"{scale} {duration(t)}" for scale, t in about.seconds.items())
        console.print(Padding(Text(times, style="dim"), (0, 0, 0, 2)))
        for id, claim in about.claims.items():
            line = Text(f"{id}: {claim.words} ").append(f"({claim.kind})", style="dim")
            console.print(Padding(line, (0, 0, 0, 2)))
        console.print()
