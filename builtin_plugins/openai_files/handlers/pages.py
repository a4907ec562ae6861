"""Lists in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def page_fields(rows: Sequence[Any], has_more: bool) -> dict[str, Any]:
    """The fields of a page of a list."""
    return {
        "data": list(rows),
        "first_id": rows[0].id if rows else None,
        "last_id": rows[-1].id if rows else None,
        "has_more": has_more,
    }
