"""Every benchmark in turn: python -m benchmarks"""

from . import any_attack, patches, stacks, theta_star, two_layer

for benchmark in (theta_star, stacks, two_layer, any_attack, patches):
    benchmark.main()
