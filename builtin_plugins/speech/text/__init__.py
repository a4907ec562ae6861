"""Preparing text for speech."""
