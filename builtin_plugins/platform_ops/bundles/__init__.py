"""Named sets of services that are switched together."""
