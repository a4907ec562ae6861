"""Rows of graphs: who sees them, writing and dropping them."""
