"""Every benchmark in turn: python -m benchmarks"""

from . import stacks, theta_star, two_layer

for benchmark in (theta_star, stacks, two_layer):
    benchmark.main()
