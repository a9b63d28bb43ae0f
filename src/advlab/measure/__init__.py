"""What a trained model shows."""
