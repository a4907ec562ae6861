"""Feeds as sources."""
