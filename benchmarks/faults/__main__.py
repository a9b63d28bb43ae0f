"""Run the campaign and print one table: python -m benchmarks.faults [--short] [PART...]"""

import sys
import time
from collections.abc import Callable

from . import Fault
from .flips import flip_bits
from .forged import crafted_files
from .kills import kill_all
from .machines import machine_faults
from .pages import evil_pages


def parts(short: bool) -> dict[str, Callable[[], list[Fault]]]:
    """The parts of the campaign by name; `short` has a few trials of each kind."""
    return {
        "kills": lambda: kill_all(2 if short else 34),
        "flips": lambda: flip_bits(30 if short else 510),
        "machine": machine_faults,
        "forged": lambda: [crafted_files()],
        "pages": lambda: [evil_pages()],
    }


def main() -> None:
    """Print each part's rows when it ends; exit code 1 if any trial was silent."""
    chosen = [name for name in sys.argv[1:] if name != "--short"]
    known = parts("--short" in sys.argv)
    if unknown := [name for name in chosen if name not in known]:
        sys.exit(f"unknown part {unknown[0]!r}; there are {', '.join(known)}")
    print(f"{'fault':<36}{'trials':>8}{'detected':>10}{'recovered':>11}{'silent':>8}", flush=True)
    silent = 0
    for name in chosen or known:
        begun = time.perf_counter()
        for one in known[name]():
            print(
                f"{one.kind:<36}{one.trials:>8}{one.detected:>10}{one.recovered:>11}{one.silent:>8}"
            )
            silent += one.silent
        print(f"  {name}: {time.perf_counter() - begun:.0f} s", flush=True)
    sys.exit(1 if silent else 0)


if __name__ == "__main__":
    main()
