"""Plugins that go wrong on purpose."""
