"""advlab data: where data sets are kept, which are there, and how to get them."""

import json
from pathlib import Path
from typing import Annotated

import typer

data = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show where data sets are, or fetch them."
)

Directory = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The folder of data sets; if left out $ADVLAB_DATA, else a per-user cache.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@data.command()
def path(directory: Directory = None, as_json: Json = False) -> None:
    """Show the data directory in use, why it is that one, and which data sets are there.

    Examples:

    \b
      advlab data path
      advlab data path --data ~/data --json
    """
    from ..data.directory import data_root, present
    from ..data.published import SETS

    root = data_root(directory)
    files = {name: [str(file) for file in present(name, directory)] for name in SETS}
    if as_json:
        told = {"directory": str(root.path), "reason": root.reason, "sets": files}
        typer.echo(json.dumps(told))
        return
    typer.echo(f"{root.path}\n  {root.reason}")
    for name, there in files.items():
        names = ", ".join(Path(file).name for file in there)
        typer.echo(f"  {name}: {names or f'not there; run `advlab data fetch {name}`'}")


@data.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="mnist, cifar10 or cifar100.")],
    directory: Directory = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A folder to fetch the files from; may be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Download what is missing of a data set, check its checksums, and print its folder.

    Examples:

    \b
      advlab data fetch mnist
      advlab data fetch cifar10 --data ~/data
      advlab data fetch mnist --mirror https://example.org/mnist
    """
    from ..data.directory import data_set, present
    from ..data.download import fetch as fetch_set

    folder = fetch_set(name, directory, mirror)
    typer.echo(f"{data_set(name).title} ({data_set(name).terms})", err=True)
    if as_json:
        files = [str(file) for file in present(name, directory)]
        typer.echo(json.dumps({"name": name, "folder": str(folder), "files": files}))
        return
    typer.echo(folder)
