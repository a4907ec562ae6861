"""Secrets of accounts, organizations and plugins: rows encrypted with a key of the home."""
