"""The distribution: its name, its folders of data, and the version of the plugin API."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

# The first part is raised if plugins have to change.
API_VERSION = "1.0"

CODE_CONTRACT = "platform.dev/v1"
"""The same for plugins that name the contract as the specification does (9.3)."""


DISTRIBUTION = "platform-kernel"


def fits_contract(declared: str) -> bool:
    """Whether a plugin written for this version of the plugin API, or for this contract, works here."""
    return declared == CODE_CONTRACT or declared.partition(".")[0] == API_VERSION.partition(".")[0]


def data_folder(name: str) -> Path:
    """The folder `name` of this installation, such as `schemas/`: at the top of a checkout, or in a wheel.

    Raises FileNotFoundError if neither the checkout nor the wheel contains it.
    """
    candidates = (_PACKAGE / "_data" / name, _PACKAGE.parent / name)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the installation lacks its '{name}' folder; reinstall platform-kernel")
