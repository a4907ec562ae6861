"""Changes in folders are noticed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from builtin_plugins.source_folder.watching import remote_kind, watch_folder
from builtin_plugins.sources.api import SourceUnreachable

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHIN = 20.0
"""Seconds; it takes one or two on a machine that is not busy."""


async def test_content_and_permissions_are_noticed(tmp_path: Path) -> None:
    """Also in new folders; a folder that is taken away is a fault."""
    place = tmp_path / "place"
    place.mkdir()
    async with aclosing(watch_folder(place)) as changes:

        async def noticed() -> None:
            await asyncio.wait_for(anext(changes), WITHIN)

        await noticed()
        (place / "new").mkdir()
        await noticed()
        (place / "new" / "a.txt").write_text("A")
        await noticed()
        (place / "new" / "a.txt").chmod(0o600)
        await noticed()
        (place / "new" / "a.txt").unlink()
        await noticed()
        place.rename(tmp_path / "elsewhere")
        place.mkdir()
        with pytest.raises(SourceUnreachable):
            while True:
                await noticed()


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/srv/a", None),
        ("/srv/share/x", "nfs4"),
        ("/srv", "nfs4"),
        ("/my disk/x", "cifs"),
        ("/srv/shared", None),
        ("/Bücher/x", "nfs"),
    ],
)
async def test_file_systems_of_others_report_nothing(place: str, kind: str | None) -> None:
    mounts = (
        "22 1 0:21 / / rw - ext4 /dev/sda rw\n"
        "23 22 0:22 / /srv/share rw shared:1 - nfs4 server:/x rw\n"
        "24 22 0:23 / /my\\040disk rw - cifs //server/x rw\n"
        "25 22 0:24 / /Bücher rw - nfs server:/y rw\n"
        "26 22 0:25 / /odd\udce4name rw - ext4 /dev/sdb rw\n"
    )
    assert remote_kind(Path(place), mounts) == kind
