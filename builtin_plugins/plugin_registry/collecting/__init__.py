"""Collecting data and analyses from plugins, and checking their health."""
