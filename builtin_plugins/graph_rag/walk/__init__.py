"""From the first passages of a ranking to others that share a rare entity with them. All of it in memory."""
