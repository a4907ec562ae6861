"""Embedding engines: each turns texts into unit vectors in this process, without network calls."""
