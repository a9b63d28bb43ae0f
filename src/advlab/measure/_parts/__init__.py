"""What measures share."""
