"""The health check of the manifests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kernel.sdk import Platform
from kernel.sdk.telemetry import NotChecked

from .live_folder import FOLDER
from .secrets import how_to_set, missing_secret

_NAMED = 3


async def check(platform: Platform) -> None:
    """Name every manifest that is refused, or that works differently than its author may think.

    The platform stays healthy: each manifest has a status of its own.
    """
    folder = platform.resource(FOLDER)
    live = list(folder.live())
    lacking = await asyncio.to_thread(
        lambda: {one.name: secret for one in live if (secret := missing_secret(platform, one.manifest))}
    )
    wrong = [_about_secrets(lacking)] if lacking else []
    wrong += [f"{name}: {reason}" for name, reason, _ in folder.refused()]
    wrong += [f"{one.name}: {'; '.join(map(str, one.oddities))}" for one in live if one.oddities]
    if wrong:
        raise NotChecked("; ".join(wrong))


def _about_secrets(lacking: Mapping[str, str]) -> str:
    """Kept short enough to be shown in full, as it ends with a command to copy."""
    if len(lacking) == 1:
        ((name, secret),) = lacking.items()
        return f"{name}: {how_to_set(secret)}"
    names = [*list(lacking)[:_NAMED], *(["…"] if len(lacking) > _NAMED else [])]
    return f"{len(lacking)} manifests lack their secrets ({', '.join(names)}): platformctl manifests list"
