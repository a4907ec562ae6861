"""Fields of documents: their kinds and values, where values come from, editing them, rules and tables."""
