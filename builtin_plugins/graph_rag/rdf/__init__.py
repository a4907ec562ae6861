"""Graphs as RDF, derived from rows."""
