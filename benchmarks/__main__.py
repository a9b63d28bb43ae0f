"""Every benchmark in turn: python -m benchmarks"""

from . import stacks, theta_star

for benchmark in (theta_star, stacks):
    benchmark.main()
