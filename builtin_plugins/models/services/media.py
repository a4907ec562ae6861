"""Pictures, sound and video in chats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from builtin_plugins.models.errors import MediaAddressRefused


def refuse_addresses(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raise MediaAddressRefused if a message names a picture or the like instead of containing it.

    A model server fetches what such an address names, from inside its own network, and describes it.
    """
    for address in _addresses(messages):
        if not (isinstance(address, str) and address.lower().startswith("data:")):
            raise MediaAddressRefused()


def _addresses(messages: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Whatever stands under `image_url`, `audio_url`, `video_url` and the like."""
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            for name, value in part.items() if isinstance(part, Mapping) else ():
                if name.endswith("url") and value is not None:
                    yield value.get("url") if isinstance(value, Mapping) else value
