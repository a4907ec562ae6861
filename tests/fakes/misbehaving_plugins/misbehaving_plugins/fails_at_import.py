"""Fails while it is imported."""

raise RuntimeError("the license file is missing")
