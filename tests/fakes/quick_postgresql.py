"""Lets the PostgreSQL of the tests lose its data at a power cut, or ends that.

    python -m tests.fakes.quick_postgresql on|off

Databases of tests are dropped by the hundred, and each drop is a checkpoint of the whole server: on a slow
disk that was a quarter of CI's time. Only for a server that holds nothing else.
"""

from __future__ import annotations

import os
import sys

from kernel.testing import POSTGRES
from kernel.testing.databases import administer

SETTINGS = ("fsync", "full_page_writes")


def main() -> int:
    """Change the server's settings; it need not restart."""
    if sys.argv[1:] not in (["on"], ["off"]):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    change = "SET {} = off" if sys.argv[1] == "on" else "RESET {}"
    statements = [f"ALTER SYSTEM {change.format(name)}" for name in SETTINGS]
    administer(os.environ.get("PLATFORM_TEST_POSTGRES", POSTGRES), *statements, "SELECT pg_reload_conf()")
    return 0


if __name__ == "__main__":
    sys.exit(main())
