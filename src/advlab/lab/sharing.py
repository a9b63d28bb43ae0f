"""Runs that several experiments have in common are computed once: the others take them over.

Two figures that read the same training have the same cases and the same `compute`. Each keeps its
own folder, whole in itself; a run that a sibling has is copied there if its settings, the code that
computed it and its files are what they should be. The sweep then finds it like any other, and
judges its data files as ever.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ..core.errors import AdvlabError
from .case import Case
from .store import Store


def take_over(cases: Iterable[Case], code: str, folder: Path, siblings: Sequence[Path]) -> int:
    """Copy the runs of cases that a folder has not, from folders that have them.

    Args:
        cases: whose runs are wanted.
        code: the fingerprint of the code that computes them; runs of other code stay where they
            are.
        folder: where the runs are wanted.
        siblings: where they may be, in the order in which they are asked.

    Returns:
        How many runs were taken over.

    Example:
        take_over(cases, code, Path("runs/cgro/fig2"), [Path("runs/cgro/fig1")])
    """
    there = [Store(one.absolute()) for one in siblings if one.is_dir()]
    mine = Store(folder.absolute())
    taken = 0
    if not there:
        return taken
    for case in cases:
        if mine.code(case) == code:
            continue
        for other in there:
            with suppress(AdvlabError):  # damaged there, or nothing may be written here
                if other.code(case) == code and mine.copy(case, other):
                    taken += 1
                    break
    return taken
