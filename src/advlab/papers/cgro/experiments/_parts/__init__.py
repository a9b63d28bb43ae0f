"""What the experiments of the CGRO paper share: runs, figures, claims."""
