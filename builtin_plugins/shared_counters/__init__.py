"""Counters of rate limits that several API processes share, in Redis or the database."""
