"""All comparisons with peers in turn: python -m benchmarks.peers"""

from . import main

main()
