"""Opens the platform of this environment without plugins, and closes it: run as its own process."""

from __future__ import annotations

import asyncio

from kernel.boot import open_platform
from kernel.settings.loading import SettingsLoader


async def main() -> None:
    """Open and close."""
    async with open_platform(SettingsLoader.from_home(), role="api", candidates=[]):
        pass


if __name__ == "__main__":
    asyncio.run(main())
