"""The parsers of this platform: those of plugins first, then the built-in ones."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from builtin_plugins.documents.blocks import Parser
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.refusals import why_refused
from kernel.sdk import Children, ResourceKey

log = logging.getLogger("platform.documents.parsers")

_HEAD = 64 * 1024
_TARGET = re.compile(r"[\w.]+:\w+")


@dataclass(frozen=True, slots=True)
class DocumentParser:
    """A parser of further document types (`register_parsers`). Raises ValueError for an invalid one.

    `target` (``package.module:function``) takes the file's path and yields texts, ``(text, page)`` pairs or
    `Block`s; it runs in a limited subprocess, as does `extractor`, which takes the path and yields the files
    inside as `ExtractedFile`s. There, `omit` counts what is left out, for the document's notice, and
    `begin_page` tells how far the parser is.

    `detect` is called with the first 64 KiB of an upload, `detect_file` with its path and its name as it was
    sent; each returns one of the media types, or None. `detect_file` runs in a thread of the server: it
    should read little, and unpack nothing.
    """

    name: str
    media_types: Sequence[str]
    target: str
    detect: Callable[[bytes], str | None] | None = None
    detect_file: Callable[[Path, str], str | None] | None = None
    extractor: str | None = None

    def __post_init__(self) -> None:
        if not self.name or not self.media_types or isinstance(self.media_types, str):
            raise ValueError("a parser needs a name and a list of media types")
        for what, function in (("target", self.target), ("extractor", self.extractor)):
            if function is not None and not _TARGET.fullmatch(function):
                raise ValueError(
                    f"the {what} of the parser '{self.name}' must have the form 'package.module:function'"
                )
        if self.detect is None and self.detect_file is None:
            raise ValueError(f"the parser '{self.name}' needs detect or detect_file")


class Parsers:
    """Which parser reads what."""

    def __init__(self, declared: Iterable[tuple[str, DocumentParser]], recognizer: str | None = None) -> None:
        self.recognizer = recognizer
        """What recognizes text in pictures before tesseract is asked."""
        self._declared: list[tuple[str, DocumentParser]] = []
        self._by_type = {
            media_type: parser for parser in BUILTIN_PARSERS for media_type in parser.media_types
        }
        for plugin, offered in declared:
            types = tuple(offered.media_types)
            parser = Parser(offered.name, types, offered.target, offered.extractor)
            self._by_type.update(dict.fromkeys(types, parser))
            self._declared.append((plugin, offered))
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
        if self._declared:
            with path.open("rb") as handle:
                head = handle.read(_HEAD)
            for plugin, offered in self._declared:
                media_type = _ask(plugin, offered, head, path, filename)
                if media_type in self._by_type:
                    return media_type
        return detect_media_type(path, filename)


def _ask(plugin: str, parser: DocumentParser, head: bytes, path: Path, filename: str) -> str | None:
    try:
        media_type = parser.detect(head) if parser.detect else None
        if media_type is None and parser.detect_file:
            media_type = parser.detect_file(path, filename)
    except Exception:  # boundary: third-party code
        log.exception("plugin %s: its parser %s could not detect its types", plugin, parser.name)
        return None
    return media_type


PARSERS: ResourceKey[Parsers] = ResourceKey("document parsers")
PARSER_PROCESSES: ResourceKey[Children] = ResourceKey("parser processes")
