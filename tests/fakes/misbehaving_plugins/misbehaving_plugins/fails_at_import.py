"""Fails while it is imported."""

raise RuntimeError("the licence file is missing")
