"""What a start imports: a library that one request in a hundred needs waits until that request comes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from kernel.testing import migrated_home

# What `platformctl serve` imports, and then a start of the API process with every installed plugin.
_START = """
import asyncio, sys
import cli.processes, cli.welcome
from cli.running import make_loader
from kernel.gateway.app import gateway_app
from kernel.boot import open_platform

async def start():
    async with open_platform(make_loader(), role="api") as platform:
        assert all(record.status == "loaded" for record in platform.plugins), platform.plugins
        gateway_app(platform)

asyncio.run(start())
print(*sorted({name.partition(".")[0] for name in sys.modules}), sep="\\n")
"""

OURS = {"kernel", "cli", "builtin_plugins"}

# Each of them is needed by every process, or costs less than 5 ms. To add one, measure it first
# (`python -X importtime -m cli serve --no-worker`); anything else is imported in the function that needs it.
NEEDED = {
    "aiohappyeyeballs",
    "aiohttp",
    "backports",  # aiohttp reads Zstandard with backports.zstd where that is installed
    "aiosignal",
    "aiosmtplib",
    "aiosqlite",
    "annotated_types",
    "anyio",
    "argon2",
    "attr",
    "cryptography",
    "email_validator",
    "frozenlist",
    "greenlet",
    "idna",
    "jwt",
    "multidict",
    "packaging",
    "pluggy",
    "prometheus_client",
    "propcache",
    "pydantic",
    "pydantic_core",
    "sqlalchemy",
    "typer",
    "typing_extensions",
    "typing_inspection",
    "uvloop",
    "watchfiles",
    "yarl",
}


def imported_by_a_start(home: Path) -> set[str]:
    """The packages of other people that a start imports; parts of theirs, such as `_openssl`, don't count."""
    passed_on = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    environment = {**passed_on, "PLATFORM_HOME": str(home), "PLATFORM_MANIFESTS_DIR": str(home / "manifests")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _START],
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=home.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    installed = {name for name in packages_distributions() if not name.startswith("_")}
    return set(done.stdout.split()) & installed - OURS


def test_a_start_imports_only_what_every_process_needs(tmp_path: Path) -> None:
    """Models, indexes, parsers, protocols and the job engine wait until somebody needs them."""
    home = tmp_path / "home"
    extra = sorted(imported_by_a_start(migrated_home(home)) - NEEDED)  # making tables needs Alembic
    assert not extra, f"imported at start, but not needed by every process: {', '.join(extra)}"
