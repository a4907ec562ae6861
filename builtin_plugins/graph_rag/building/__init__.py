"""From a text to the rows of its graph."""
