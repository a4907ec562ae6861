"""Filters on documents' fields: their grammar, their SQL, Dify's shape of them, counts per value."""
