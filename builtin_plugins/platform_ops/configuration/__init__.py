"""The settings in effect."""
