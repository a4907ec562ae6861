"""The life cycle of accounts."""
