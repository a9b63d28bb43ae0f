"""What the experiments of the convergence paper share: runs, figures, claims."""
