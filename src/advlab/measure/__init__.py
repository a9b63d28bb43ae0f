"""What a trained model shows; docs/measures.md has the list."""
