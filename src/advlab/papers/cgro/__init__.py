"""Why clean generalization and robust overfitting both happen in adversarial training: theory."""
