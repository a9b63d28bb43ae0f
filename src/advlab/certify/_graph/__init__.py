"""Reads networks into graphs and propagates bounds through them."""
