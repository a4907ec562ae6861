"""Secrets of accounts, organizations and plugins: encrypted rows under a key of the home's."""
