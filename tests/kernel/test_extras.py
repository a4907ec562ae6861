"""Extras: a plugin without its packages is not installed, says how to install them, and degrades nothing."""

from __future__ import annotations

from importlib.metadata import Distribution, EntryPoint, PathDistribution
from pathlib import Path
from typing import Any

import pytest

from kernel.errors import StartupError
from kernel.plugins.extras import Extras, extras_of, require
from kernel.plugins.loading import Candidate, Plugin
from kernel.testing import Start

METADATA = """Metadata-Version: 2.4
Name: acme-notes
Version: 1.2
Provides-Extra: notes
Provides-Extra: sound
Provides-Extra: all
Requires-Dist: pydantic
Requires-Dist: acme-absent; extra == "notes"
Requires-Dist: acme-older; python_version < "3.9" and extra == "notes"
Requires-Dist: aiohttp; extra == "sound"
Requires-Dist: Acme_Notes[notes,sound]; extra == "all"
"""
LINE = "pip install 'acme-notes[notes]' installs it (missing: acme-absent)"


@pytest.fixture
def acme(tmp_path: Path) -> Distribution:
    """A distribution with extras, one of which needs a package that is not there."""
    folder = tmp_path / "acme_notes-1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA)
    return PathDistribution(folder)


def test_what_is_missing(acme: Distribution) -> None:
    """Only what the extra adds on this Python counts, also through an extra that stands for others."""
    extras = Extras(acme)
    assert extras.remedy(()) is None
    assert extras.remedy(["sound"]) is None
    assert extras.remedy(["notes"]) == LINE
    assert extras.remedy(["all"]) == LINE.replace("[notes]", "[all]")


@pytest.mark.parametrize(
    ("value", "extras"),
    [
        ("acme.plugin:Notes", []),
        ("acme.plugin:Notes [notes]", ["notes"]),
        ("acme.plugin:Notes [old-notes, sound]", ["old-notes", "sound"]),
    ],
)
def test_what_an_entry_point_names(value: str, extras: list[str]) -> None:
    """A name with a hyphen is one name."""
    assert extras_of(EntryPoint("notes", value, "platform.plugins")) == extras


def test_a_setting_without_its_package() -> None:
    """A setting that needs a package stops the start, with the command that installs it."""
    require("REDIS_URL", "redis", "json")
    with pytest.raises(StartupError, match=r"REDIS_URL .*pip install 'platform-kernel\[redis\]'"):
        require("REDIS_URL", "redis", "acme_absent")


class Reader(Plugin):
    """Needs the plugin that is not installed."""

    name = "reader"
    requires = ("notes",)


def notes(loads: list[str]) -> Candidate:
    """A candidate without its packages; `loads` gets a line if it is imported all the same."""

    def load() -> Any:
        loads.append("imported")
        raise ModuleNotFoundError("acme_absent")

    return Candidate("notes", load, "acme-notes", "1.2", "acme", lambda: LINE)


async def test_degrades_nothing(start_platform: Start) -> None:
    """It isn't imported; health and the list of plugins give the command, also for what requires it."""
    loads: list[str] = []
    running = await start_platform("plugin_registry", notes(loads), Reader)
    health = (await running.anonymous.get("/health")).json()
    assert (health["status"], health["checks"]["plugins"], loads) == ("healthy", "healthy", [])
    assert health["plugins"]["notes"] == {"status": "not_installed", "reason": LINE}
    assert health["plugins"]["reader"]["status"] == "not_installed"
    assert LINE in health["plugins"]["reader"]["reason"]
    admin = await running.user("ann", role="admin")
    listed = (await admin.get("/v1/plugins/notes")).json()
    assert (listed["status"], listed["enabled"], listed["reason"]) == ("registered", False, LINE)
    assert listed["version"] == "1.2"
    assert (await admin.post("/v1/plugins/notes/enable")).status == 409
