"""The methods of answering, one module each: see `method.Method` for what they have in common."""
