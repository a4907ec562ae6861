"""Walks from the first passages of a ranking to others that share a rare entity, all in memory."""
