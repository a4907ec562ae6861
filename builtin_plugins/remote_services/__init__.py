"""Services that run on other machines, behind this gateway."""
