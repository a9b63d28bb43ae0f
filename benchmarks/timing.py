"""Timing that is fair to both sides: one run, in turns, medians."""

import time
from collections.abc import Callable, Mapping
from statistics import median


def interleaved(
    contenders: Mapping[str, Callable[[], object]], repeats: int = 5
) -> dict[str, float]:
    """Median seconds of each contender; they take turns, so a slow spell of the machine hits all.

    Each is called once before the clock starts.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(repeats):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}
