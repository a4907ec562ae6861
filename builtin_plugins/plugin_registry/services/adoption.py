"""Moves secret settings, which an earlier release stored in files in the home, to the plugins' secrets."""

from __future__ import annotations

import asyncio
import logging

from sqlalchemy import select

from builtin_plugins.owner_secrets.api import OWNER_SECRETS, SecretOwner
from kernel.sdk import Platform, Unit

from ..models import ConfigValue
from .fields import secret_name

log = logging.getLogger("platform.registry")

_PREFIX = "config."


async def adopt_files(platform: Platform) -> None:
    """Move them; a kill in between does no harm: a file is removed after its value was committed."""
    files = [name for name in await asyncio.to_thread(platform.secrets.names) if name.startswith(_PREFIX)]
    if not files:
        return
    values = {name: await asyncio.to_thread(platform.secrets.get, name) for name in files}
    adopted = await platform.database.write(_adopt, platform, values)
    for name in adopted:
        await asyncio.to_thread(platform.secrets.remove, name)
    if adopted:
        log.info("%d secret settings moved from files into the database, encrypted", len(adopted))


def _adopt(unit: Unit, platform: Platform, values: dict[str, str | None]) -> list[str]:
    """Only adopt files of stored settings; any other with such a name is somebody's own secret."""
    unit.lock("plugin_registry")
    secrets, adopted = platform.resource(OWNER_SECRETS), []
    for row in list(unit.session.scalars(select(ConfigValue))):
        file = f"{_PREFIX}{row.plugin}.{row.field}"
        value = values.get(file) if row.value is None else None
        owner, name = SecretOwner("plugin", row.plugin), secret_name(row.field)
        if value is None:
            continue
        adopted.append(file)
        if value and name not in {entry.name for entry in secrets.list(unit.session, owner)}:
            secrets.put(unit, owner, name, value)
    return adopted
