"""Convergence of adversarial training in overparametrized networks (sphere, any attack)."""
