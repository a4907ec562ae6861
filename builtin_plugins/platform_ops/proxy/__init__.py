"""Requests passed on to registered services."""
