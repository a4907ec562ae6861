"""Folders of the server as sources."""
