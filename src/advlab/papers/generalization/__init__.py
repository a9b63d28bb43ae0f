"""Generalization properties of adversarial training (linear regression and lazy networks)."""
