"""What the experiments of the benign overfitting paper share: runs, figures, claims."""
