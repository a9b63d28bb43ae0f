"""What attacks share: the best point so far, the objective climbed, step sizes, targets."""
