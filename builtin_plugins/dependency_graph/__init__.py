"""The dependency graph of the catalog: what requires, suggests and conflicts with what."""
