"""Finding entities in text by rules, in every script."""
