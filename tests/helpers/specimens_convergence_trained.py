"""Specimens of the experiments of convergence that train."""

TRAINED = {}
