"""Bodies of clients that send arguments as they please."""

from __future__ import annotations

import json
from typing import Any


def loose_object(raw: bytes) -> dict[str, Any]:
    """The JSON object that a body holds; what is absent or no object means no arguments (wire-facts 8.1)."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
