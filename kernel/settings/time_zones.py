"""Names of time zones in settings."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator


def _known(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is not a time zone; write one such as Europe/Berlin or UTC") from None
    return name


TimeZone = Annotated[str, AfterValidator(_known)]
