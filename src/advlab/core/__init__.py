"""The ground floor: errors, configs, randomness, checks of numbers, files, identity, progress."""
