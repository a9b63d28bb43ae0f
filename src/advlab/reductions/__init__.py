"""Exact shortcuts that two papers share: the same run in fewer numbers."""
