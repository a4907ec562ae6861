"""Finds folders of data, such as `schemas/`: at the top of a checkout, or inside an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """The folder `name` of this installation.

    Raises FileNotFoundError if neither the checkout nor the wheel contains it.
    """
    candidates = (_PACKAGE / "_data" / name, _PACKAGE.parent / name)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the installation lacks its '{name}' folder; reinstall platform-kernel")
