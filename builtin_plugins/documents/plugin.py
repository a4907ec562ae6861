"""The plugin that reads documents: formats, passages, and parsers in limited processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from builtin_plugins.documents import api
from builtin_plugins.documents.registry import PARSER_PROCESSES, PARSERS, Parsers
from builtin_plugins.documents.runner import parser_processes
from kernel.sdk import (
    Children,
    Platform,
    Plugin,
    Resource,
    hookimpl,
)


class DocumentsPlugin(Plugin):
    """Reads files of many formats, each in a process of its own, and cuts their texts into passages."""

    name = "documents"
    version = "0.1.0"
    description = "Reading documents: formats, text recognition, passages"
    author = "Platform"

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [api]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [Resource(PARSERS, _open_parsers), Resource(PARSER_PROCESSES, _open_parser_processes)]


@asynccontextmanager
async def _open_parsers(platform: Platform) -> AsyncIterator[Parsers]:
    declared = [
        (plugin, parser)
        for plugin, parsers in platform.hooks.ask_now(api.register_parsers)
        for parser in parsers
    ]
    yield Parsers(declared, platform.hooks.ask_now(api.find_recognizer, platform))


@asynccontextmanager
async def _open_parser_processes(_platform: Platform) -> AsyncIterator[Children]:
    async with aclosing(parser_processes()) as children:
        yield children
