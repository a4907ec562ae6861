"""Mailboxes as sources."""
