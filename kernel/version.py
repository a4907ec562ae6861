"""The name of the distribution, and the version of the plugin API."""

from __future__ import annotations

# The first part is raised if plugins have to change.
API_VERSION = "1.0"

CODE_CONTRACT = "platform.dev/v1"
"""The same for plugins that name the contract as the specification does (9.3)."""


DISTRIBUTION = "platform-kernel"


def fits_contract(declared: str) -> bool:
    """Whether a plugin written for this version of the plugin API, or for this contract, works here."""
    return declared == CODE_CONTRACT or declared.partition(".")[0] == API_VERSION.partition(".")[0]
