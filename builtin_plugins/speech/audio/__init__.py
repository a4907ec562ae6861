"""Audio files: writing them, and decoding what clients send."""
