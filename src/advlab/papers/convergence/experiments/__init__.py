"""One file per claim of the convergence paper that an experiment decides."""
