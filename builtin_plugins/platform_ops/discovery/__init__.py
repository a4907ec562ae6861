"""Services that register themselves."""
