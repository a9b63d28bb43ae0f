"""One file per figure, table or question of the convergence paper."""
