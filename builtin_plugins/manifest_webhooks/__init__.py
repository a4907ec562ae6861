"""Declarative plugins: a manifest that turns an inbound webhook into a stored vector. See README.md."""
