"""Queries over the graphs that a caller sees."""
