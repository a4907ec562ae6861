"""The last log lines of each core service."""
