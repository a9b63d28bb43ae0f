"""What the experiments of the generalization paper share: runs, figures, claims."""
