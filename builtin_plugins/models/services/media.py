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
    """Whatever stands under `image_url`, `audio_url`, `video_url` and the like, in any case."""
    for message in messages:
        for content in _values(message, "content"):
            for part in content if isinstance(content, list) else ():
                for value in _values(part, "url") if isinstance(part, Mapping) else ():
                    yield from _values(value, "url") or [None] if isinstance(value, Mapping) else [value]


def _values(fields: Mapping[str, Any], name: str) -> list[Any]:
    """The values of names that end so; servers written in Go read names in any case."""
    values = (value for key, value in fields.items() if key.lower().endswith(name))
    return [value for value in values if value is not None]
