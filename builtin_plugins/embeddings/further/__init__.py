"""Embedding models configured by an operator: folders in sentence-transformers' format, and endpoints."""
