"""News from RSS and Atom feeds, as documents."""
