"""Embedding models that an operator names: folders in sentence-transformers' format, and endpoints."""
