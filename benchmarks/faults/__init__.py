"""Faults on purpose: what is killed, flipped, full or forged never changes a number in silence.

python -m benchmarks.faults            # the whole campaign, about half an hour on two cores
python -m benchmarks.faults --short    # a few trials of each kind, minutes
python -m benchmarks.faults flips      # one part: kills, flips, machine, forged or pages
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One kind of fault, tried some times.

    `detected` trials were noticed and said so, `recovered` ones ended in the right result, and
    `silent` ones gave another result without a word: there must be none.
    """

    kind: str
    trials: int
    detected: int
    recovered: int
    silent: int
