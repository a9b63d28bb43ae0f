"""Speed as ratios against the plain way, each measured in one run; kept in results.md."""
