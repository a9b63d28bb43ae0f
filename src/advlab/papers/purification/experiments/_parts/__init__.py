"""What the experiments of the feature purification paper share: runs, figures, claims."""
