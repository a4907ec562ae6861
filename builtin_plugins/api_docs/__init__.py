"""The documents of the API, and the pages that show them."""
