"""The command `advlab`: one file per verb, imported only when that verb is called."""

import inspect
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from .. import __version__
from ..core.errors import AdvlabError

VERBS: dict[str, tuple[str, str]] = {
    "list": ("advlab.cli.list:list_experiments", "Show the experiments and their claims."),
    "run": (
        "advlab.cli.run:run",
        "Run experiments and decide their claims.",
    ),
    "train": ("advlab.cli.train:train", "Train a robust network by a recipe."),
    "attack": ("advlab.cli.attack:attack", "Bracket the robust error of a model."),
    "compare": ("advlab.cli.compare:compare", "Compare two models row by row."),
    "fit-linear": (
        "advlab.cli.fit_linear:fit_linear",
        "Fit a robust linear model of a table, exactly.",
    ),
    "report": ("advlab.cli.report:report", "Make one HTML page of everything that was run."),
    "verify": ("advlab.cli.verify:verify", "Check that stored runs are whole and up to date."),
    "data": ("advlab.cli.data:data", "Show where data sets are, or fetch them."),
}


class _Verbs(TyperGroup):
    """Lists the verbs by the lines above and imports only the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, _imported(str(name)), rest


def _imported(verb: str) -> Any:
    module, _, name = VERBS[verb][0].partition(":")
    found = getattr(import_module(module), name)
    if isinstance(found, typer.Typer):
        return get_command(found)
    single = typer.Typer(add_completion=False)
    single.command(verb, help=_unwrapped(inspect.cleandoc(found.__doc__)))(found)
    return get_command(single)


def _unwrapped(text: str) -> str:
    """Each paragraph as one line, for the width of the terminal; those after \\b as they are."""
    parts = text.split("\n\n")
    return "\n\n".join(one if "\b" in one else " ".join(one.split("\n")) for one in parts)


app = typer.Typer(cls=_Verbs)
for _verb, (_, _help) in VERBS.items():
    app.command(_verb, help=_help)(lambda: None)


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"advlab {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def advlab(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """A laboratory for adversarial training: theory, attacks and training side by side.

    Examples:

    \b
      advlab list
      advlab run generalization/fig5 --scale smoke
      advlab run "generalization/*" --jobs 2
      advlab report
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    arguments = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        code = get_command(app).main(arguments, prog_name="advlab", standalone_mode=False)
    except AdvlabError as error:
        code = _complain(str(error))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        code = _complain(f"{place}{error.strerror or error}; choose another file or folder")
    except typer.TyperException as error:
        code = _complain(error.format_message())
    sys.exit(code)


def _complain(message: str) -> int:
    if message.strip():  # a group without a verb has printed its help and says nothing more
        print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return 2
