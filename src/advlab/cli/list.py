"""advlab list: what can be run."""

import json
from typing import Annotated

import typer


def list_experiments(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names, papers or globs; all of them if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """Show the experiments, what they take at each scale, and the claims they decide.

    Examples:

    \b
      advlab list
      advlab list generalization --json
      advlab list my_figure.py
    """
    from .. import lab
    from ..papers import EXPERIMENTS, select

    experiments = [lab.load(name) for name in select(*(names or EXPERIMENTS))]
    if as_json:
        typer.echo(json.dumps([_entry(experiment) for experiment in experiments], indent=1))
        return
    _print_table(experiments)


def _entry(experiment) -> dict:
    about = experiment.about
    return {
        "name": experiment.name,
        "paper": about.paper,
        "item": about.item,
        "title": about.title,
        "scales": list(about.seconds),
        "seconds": about.seconds,
        "claims": about.claims,
    }


def _print_table(experiments: list) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..lab.progress import duration

    table = Table("name", "paper", "item", "time", "claims", show_lines=True)
    for experiment in experiments:
        about = experiment.about
        times = "\n".join(f"{scale} {duration(time)}" for scale, time in about.seconds.items())
        claims = "\n".join(f"{id}: {claim}" for id, claim in about.claims.items())
        cells = (experiment.name, about.paper, about.item, times, claims)
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table)
