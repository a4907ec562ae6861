"""Confluence spaces as sources of knowledge bases."""
