"""What a light installation leaves out."""

from __future__ import annotations

from importlib import metadata

import pytest


def leave_out(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a package that is installed look as if it weren't."""
    real = metadata.distribution

    def light(name: str) -> metadata.Distribution:
        if name == package:
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "distribution", light)
