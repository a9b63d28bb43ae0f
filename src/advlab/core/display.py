"""What notebooks show: small tables in plain HTML."""

from collections.abc import Mapping
from html import escape


def html_table(title: str, rows: Mapping[str, object], notes: tuple[str, ...] = ()) -> str:
    """A titled table of two columns; everything in it is text, never markup.

    Args:
        title: what is shown.
        rows: names and values.
        notes: lines below it, such as warnings.
    """
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<table><caption>{escape(title)}</caption><tbody>{cells}</tbody></table>{below}"
