"""One knowledge base as a file: written by one platform, read by another."""
