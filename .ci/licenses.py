"""Prints the licenses of what requirements.lock installs, as a table; needs the checkout's environment."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.house.test_licenses import license_of  # noqa: E402 - from the checkout
from tests.house.test_lock import RUNTIME, pins  # noqa: E402

HEAD = """# Licenses of third parties

The platform is under Apache-2.0. These packages are installed with it from requirements.lock; each brings
the text of its license. Without an extra, `pip install platform-kernel` installs fewer.

| Package | Version | License |
|---|---|---|
"""


def main() -> None:
    rows = []
    for name, pin in sorted(pins(RUNTIME).items()):
        if pin.marker is None or pin.marker.evaluate():
            found = metadata.distribution(name)
            rows.append(f"| {found.metadata['Name']} | {found.version} | {license_of(found)} |\n")
    sys.stdout.write(HEAD + "".join(rows))


if __name__ == "__main__":
    main()
