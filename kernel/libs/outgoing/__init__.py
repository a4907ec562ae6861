"""Calls to other servers: where they may go, and one client for all of them."""
