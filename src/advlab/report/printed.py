"""What a paper prints, to stand beside what was measured."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, model_validator

from ..core.config import Config
from ..core.errors import AdvlabError

Words = Annotated[str, StringConstraints(min_length=1)]


class Printed(Config):
    """A number of a paper.

    Args:
        printed: as the paper has it, in its own setting.
        where: section, figure or table.
        value: the same in the unit of the verdict, where the verdict measures this very quantity.
    """

    printed: Words
    where: Words
    value: float | None = None


class PrintedTable(Config):
    """A table of a paper.

    Args:
        where: the table, or the section.
        columns: its head.
        rows: its rows, as printed.
        note: what the numbers are, and their setting; formulas between dollars are LaTeX.
    """

    where: Words
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    @model_validator(mode="after")
    def _rows_fit(self) -> "PrintedTable":
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"each row of {self.where} must have {len(self.columns)} cells")
        return self


@dataclass(frozen=True)
class Prints:
    """What papers print: numbers by the names of verdicts, tables by those of experiments."""

    numbers: Mapping[str, Printed] = field(default_factory=dict)
    tables: Mapping[str, PrintedTable] = field(default_factory=dict)


def load(path: Path) -> Prints:
    """Numbers and tables of a TOML file; one that is not there holds none.

    Args:
        path: a file with a table per verdict, and one with `rows` per printed table.

    Example:
        from pathlib import Path
        from advlab.report.printed import load
        load(Path("printed.toml")).numbers["benign/fig1/17a"].value  # 4.0
    """
    if not path.exists():
        return Prints()
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AdvlabError(f"{path} must be TOML", error) from None
    loose = [name for name, entry in entries.items() if not isinstance(entry, dict)]
    if loose:
        raise AdvlabError(f'{path} must hold tables such as ["verdict id"]', ", ".join(loose))
    tables = {name: one for name, one in entries.items() if "rows" in one}
    return Prints(
        numbers={name: Printed(**one) for name, one in entries.items() if name not in tables},
        tables={name: PrintedTable(**one) for name, one in tables.items()},
    )
