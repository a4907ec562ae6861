"""The wheel of a submission: read in a limited child process; only its metadata is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from kernel.sdk import (
    Caller,
    ChildFailed,
    ChildLimits,
    Children,
    Platform,
    ResourceKey,
    Unit,
    audit,
    utc_now,
)
from kernel.sdk.http import ReceivedFile
from kernel.sdk.operations import Reach

from ..errors import NotAWheel, NotEditable
from ..models import Listing
from ..schemas import ListingOut
from ..states import EDITABLE
from .listings import find_writable
from .records import render

LIMIT_MB = 20
_LIMITS = ChildLimits(memory_mb=400, cpu_seconds=20, wall_seconds=40, file_bytes=1_000_000)
_READ = "builtin_plugins.marketplace.wheel_reading:read_wheel"

WHEELS: ResourceKey[Children] = ResourceKey("marketplace.wheels")


@asynccontextmanager
async def open_wheels(_platform: Platform) -> AsyncIterator[Children]:
    """Children that read wheels."""
    async with aclosing(Children(preload=["builtin_plugins.marketplace.wheel_reading"])) as children:
        yield children


async def check_editable(caller: Caller, plugin_id: str) -> None:
    """Called before a large upload is read. Raises ListingNotFound, NotEditable."""
    await caller.platform.database.read(
        lambda session: _check(find_writable(session, caller.principal, plugin_id, lock=False))
    )


async def add_wheel(caller: Caller, plugin_id: str, file: ReceivedFile) -> ListingOut:
    """Read a wheel and store its metadata in the listing. Raises ListingNotFound, NotEditable, NotAWheel."""
    path = str(file.staged.path.absolute())
    try:
        wheel: dict[str, Any] = await caller.platform.resource(WHEELS).call(
            _READ, path, file.filename, limits=_LIMITS, reach=Reach([path])
        )
    except ChildFailed as error:
        raise NotAWheel(f"The file can't be read as a wheel ({error.reason})") from None
    if "problem" in wheel:
        raise NotAWheel(f"The file is not a usable wheel: {wheel['problem']}")
    record = {
        "filename": file.filename,
        "sha256": file.staged.sha256,
        "size_bytes": file.staged.size,
        "uploaded_at": utc_now().isoformat(),
        **wheel,
    }
    return await caller.platform.database.write(_keep, caller, plugin_id, record)


def _check(listing: Listing) -> None:
    if listing.status not in EDITABLE:
        raise NotEditable()


def _keep(unit: Unit, caller: Caller, plugin_id: str, facts: dict[str, Any]) -> ListingOut:
    listing = find_writable(unit.session, caller.principal, plugin_id)
    _check(listing)
    listing.wheel, listing.updated_at = facts, utc_now()
    unit.session.flush()
    after = {"filename": facts["filename"], "sha256": facts["sha256"]}
    audit(unit, "listing.wheel_uploaded", "listing", plugin_id, after=after, origin=caller.origin)
    return render(listing, caller.principal)
