"""Buckets of S3 servers as sources."""
