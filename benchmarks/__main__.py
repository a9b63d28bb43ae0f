"""Every benchmark in turn: python -m benchmarks"""

from . import (
    any_attack,
    bracket,
    certificates,
    masked_models,
    patches,
    peers,
    purification,
    stacks,
    theta_star,
    training_epoch,
    training_memory,
    two_layer,
)

PARTS = (
    theta_star, stacks, two_layer, any_attack, patches, purification, bracket, certificates,
    masked_models, training_epoch, training_memory, peers,
)  # fmt: skip
for benchmark in PARTS:
    benchmark.main()
