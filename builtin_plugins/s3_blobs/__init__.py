"""Uploads in an S3-compatible object store."""
