"""Every benchmark in turn: python -m benchmarks"""

from . import (
    any_attack,
    bracket,
    patches,
    peers,
    purification,
    stacks,
    theta_star,
    two_layer,
)

PARTS = (theta_star, stacks, two_layer, any_attack, patches, purification, bracket, peers)
for benchmark in PARTS:
    benchmark.main()
