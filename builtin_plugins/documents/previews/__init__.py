"""Documents as they look: each becomes one page of HTML without scripts, links and requests."""
