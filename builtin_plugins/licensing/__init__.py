"""Licenses of plugins: tiers, keys, seats of organizations, checkout."""
