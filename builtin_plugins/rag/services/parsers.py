"""The parsers of this platform: those of plugins first, then the built-in ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from builtin_plugins.rag.parsing import BUILTIN_PARSERS, Parser, detect_media_type
from builtin_plugins.rag.parsing.refusals import why_refused
from kernel.sdk import Children, ResourceKey, contracts

log = logging.getLogger("platform.rag.parsers")

_HEAD = 64 * 1024
Detect = Callable[[bytes], str | None]


class Parsers:
    """Which parser reads what."""

    def __init__(self, declared: Iterable[tuple[str, contracts.DocumentParser]]) -> None:
        self._detectors: list[tuple[str, Detect]] = []
        self._by_type = {
            media_type: parser for parser in BUILTIN_PARSERS for media_type in parser.media_types
        }
        for plugin, offered in declared:
            parser = Parser(offered.name, tuple(offered.media_types), offered.target)
            self._by_type.update(dict.fromkeys(offered.media_types, parser))
            self._detectors.append((plugin, offered.detect))
        self.unpacked = [media_type for media_type, parser in self._by_type.items() if parser.extractor]
        """The media types of documents that contain others."""

    def for_media_type(self, media_type: str) -> Parser | None:
        """The parser of a media type; None if there is none."""
        return self._by_type.get(media_type)

    async def detect(self, path: Path, filename: str) -> str | None:
        """The media type of a file by its content; None when no parser reads it."""
        return await asyncio.to_thread(self._detect, path, filename)

    async def why_refused(self, path: Path) -> str | None:
        """What to tell the sender of a file without a media type, where there is more to say than that."""
        return await asyncio.to_thread(why_refused, path)

    def _detect(self, path: Path, filename: str) -> str | None:
        if self._detectors:
            with path.open("rb") as handle:
                head = handle.read(_HEAD)
            for plugin, detect in self._detectors:
                found = _ask(plugin, detect, head)
                if found in self._by_type:
                    return found
        return detect_media_type(path, filename)


def _ask(plugin: str, detect: Detect, head: bytes) -> str | None:
    try:
        return detect(head)
    except Exception:  # boundary: third-party code
        log.exception("plugin %s: its parser's detect raised", plugin)
        return None


PARSERS: ResourceKey[Parsers] = ResourceKey("document parsers")
PARSER_PROCESSES: ResourceKey[Children] = ResourceKey("parser processes")
