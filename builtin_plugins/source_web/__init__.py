"""Websites as sources."""
