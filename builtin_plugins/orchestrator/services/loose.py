"""Lenient reading of bodies with arguments."""

from __future__ import annotations

import json
from typing import Any


def loose_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in a body; an empty body, or anything else, means no arguments (wire-facts 8.1)."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
