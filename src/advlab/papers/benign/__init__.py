"""Benign overfitting in adversarial training of neural networks (noisy mixtures, l2 attacks)."""
