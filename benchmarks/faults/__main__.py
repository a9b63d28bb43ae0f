"""Run the campaign and print one table: python -m benchmarks.faults [--short]"""

import sys

from . import Fault
from .flips import flip_bits
from .forged import crafted_files
from .kills import kill_all
from .machines import machine_faults
from .pages import evil_pages


def campaign(short: bool) -> list[Fault]:
    """All kinds of faults; `short` has a few trials of each."""
    return [
        *kill_all(2 if short else 34),
        *flip_bits(30 if short else 510),
        *machine_faults(),
        crafted_files(),
        evil_pages(),
    ]


def main() -> None:
    found = campaign("--short" in sys.argv)
    print(f"{'fault':<36}{'trials':>8}{'detected':>10}{'recovered':>11}{'silent':>8}")
    for one in found:
        print(f"{one.kind:<36}{one.trials:>8}{one.detected:>10}{one.recovered:>11}{one.silent:>8}")
    sys.exit(1 if any(one.silent for one in found) else 0)


if __name__ == "__main__":
    main()
