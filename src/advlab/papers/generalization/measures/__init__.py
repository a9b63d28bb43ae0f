"""What only the generalization paper measures."""
