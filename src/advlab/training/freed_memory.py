"""Memory that one step frees is kept for the next, which needs as much."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names of glibc's malloc.h."""


def keep_freed_memory() -> None:
    """Have glibc keep freed memory in this process; nothing where there is another C library.

    Otherwise it may give the activations of a step back to the system and fault them in anew at the
    next one, which took up to a quarter of the CPU time of small networks. What is kept is at most
    what was in use at once.

    Example:
        keep_freed_memory()
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 2**25)  # the most that it takes
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
