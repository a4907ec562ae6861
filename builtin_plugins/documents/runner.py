"""Run a parser in a limited child process, and trust nothing that it returns."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from builtin_plugins.documents.blocks import (
    DETAILS,
    SLOW,
    UNAVAILABLE,
    Block,
    Code,
    Parser,
    ParserUnavailable,
    SlowDocument,
    UnparsableDocument,
    damaged_pages,
    unread_pages,
)
from builtin_plugins.documents.extraction import LEFT_OUT, Bounds
from builtin_plugins.documents.images.ocr import OcrOptions
from builtin_plugins.documents.omissions import omissions
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.properties import Properties
from builtin_plugins.documents.protocol import blocks_in, read_trailer, trailer_in
from kernel.sdk import ChildFailed, ChildLimits, Children
from kernel.sdk.operations import Reach

log = logging.getLogger("platform.documents.parsers")

_TARGET: Final = "builtin_plugins.documents.child:parse_into"
_DETECTOR: Final = "chardet"
_EXTRACT: Final = "builtin_plugins.documents.extraction:extract_into"
_MEMBER_LIST_BYTES: Final = 8 * 1024 * 1024
_OWN: Final = {
    target.partition(":")[0]
    for parser in BUILTIN_PARSERS
    for target in (parser.target, parser.extractor or parser.target)
}
_EACH: Final = "builtin_plugins.documents.child:parse_each"
_SMALL_CPU_SECONDS: Final = 20
_SMALL_SECONDS: Final = 30.0
_SMALL_ANSWER_BYTES: Final = 256 * 1024
_FILE_SLACK_BYTES: Final = 1024 * 1024
_BYTES_PER_CHAR: Final = 5
_CODES: Final[dict[str, Code]] = {
    "memory": "memory",
    "timeout": "timeout",
    "output": "too_large",
    "crashed": "corrupt",
}


class ParseLimits(NamedTuple):
    """What one document may cost: address space, processor and clock seconds, characters of text."""

    memory_mb: int
    cpu_seconds: int
    wall_seconds: float
    max_text_chars: int
    ocr: OcrOptions = OcrOptions()


class ParsedDocument(NamedTuple):
    """A parsed document: its size in characters, its pages if it has any, the file with its blocks, and how
    many pages nothing here can read, were recognized in pictures, or are damaged; and how often what was left
    out (`omissions`).
    """

    char_count: int
    page_count: int | None
    sink: Path
    unread_pages: int = 0
    recognized_pages: int = 0
    damaged_pages: int = 0
    omitted: Mapping[str, int] = {}
    properties: Properties = {}
    """What the file says about itself."""


class SmallText(NamedTuple):
    """A small text: its blocks, and what the file says about itself."""

    blocks: list[Block]
    properties: Properties


def unread_part(parsed: ParsedDocument) -> str | None:
    """What to tell users about pages that are missing and parts that were left out, if there are any."""
    unread = unread_pages(parsed.unread_pages, parsed.page_count) if parsed.unread_pages else None
    damaged = damaged_pages(parsed.damaged_pages, parsed.page_count) if parsed.damaged_pages else None
    return " ".join(filter(None, (unread, damaged, *omissions(parsed.omitted)))) or None


def parser_processes() -> Children:
    """Child processes with everything imported that parsers share, and the built-in parsers when needed."""
    return Children([_module(_TARGET), _module(_EXTRACT), _DETECTOR])


def _module(target: str) -> str:
    return target.partition(":")[0]


def _ahead(*targets: str) -> list[str]:
    """What to import before the fork: only our own code, as all later documents run after it."""
    return [module for module in dict.fromkeys(map(_module, targets)) if module in _OWN]


def _packages(*targets: str) -> list[str]:
    """Where other plugins' parsers are; a package without `__init__.py` is not readable otherwise."""
    folders = []
    for name in {module.partition(".")[0] for module in map(_module, targets) if module not in _OWN}:
        spec = importlib.util.find_spec(name)
        folders += [] if spec is None else spec.submodule_search_locations or [spec.origin or ""]
    return folders


async def parse(
    children: Children, path: Path, parser: Parser, limits: ParseLimits, sink: Path
) -> ParsedDocument:
    """Parse the file at `path` into `sink`; read it back with `read_blocks`. A failure leaves no sink.

    Raises `UnparsableDocument` when the document is at fault, `ParserUnavailable` when the installation is,
    `MachineFault` when the machine is.
    """
    try:
        arguments, ahead = _arguments(path, parser, limits, sink), _ahead(parser.target)
        await asyncio.to_thread(sink.touch, 0o600)  # a confined child may write it, and make no other
        targets = filter(None, (parser.target, limits.ocr.recognizer))
        reach = Reach([*_absolute(path), *_packages(*targets)], _absolute(sink))
        await children.call(_TARGET, *arguments, limits=_limits(limits), ahead=ahead, reach=reach)
        trailer = await asyncio.to_thread(read_trailer, sink)
    except BaseException as error:  # a cancelled job leaves no file either
        await asyncio.to_thread(sink.unlink, missing_ok=True)
        if isinstance(error, ChildFailed):
            if parser.target.partition(":")[0] not in _OWN:
                log.warning(
                    "the parser '%s' (%s) of a plugin failed: %s: %s", *parser[::2], error, error.errors
                )
            raise _explained(error, parser) from None
        raise
    return ParsedDocument(trailer.char_count, trailer.page_count, sink, *trailer[2:])


class Member(NamedTuple):
    """A file from inside a document: its name there, and where it is now or why it was left out."""

    name: str
    path: Path | None
    left_out: str | None


async def extract(
    children: Children, path: Path, extractor: str, limits: ParseLimits, folder: Path, bounds: Bounds
) -> list[Member]:
    """Write the files inside the document at `path` into `folder`.

    Raises `UnparsableDocument` when the document is at fault, `MachineFault` when the machine is.
    """
    narrow = _limits(limits)._replace(file_bytes=bounds.file_bytes, output_bytes=_MEMBER_LIST_BYTES)
    source, place = _absolute(path, folder)
    try:
        arguments, ahead = (source, extractor, place, list(bounds)), _ahead(extractor)
        reach = Reach([source, *_packages(extractor)], [place])
        answer = await children.call(_EXTRACT, *arguments, limits=narrow, ahead=ahead, reach=reach)
    except ChildFailed as error:
        raise UnparsableDocument(_code(error), str(error)) from None
    try:
        return [
            Member(str(name)[:255], None if number is None else folder / str(int(number)), _why(reason))
            for name, number, reason in answer
        ]
    except (TypeError, ValueError) as error:
        raise UnparsableDocument("corrupt", "an invalid list of files") from error


def _absolute(*paths: Path) -> list[str]:
    return [str(path.absolute()) for path in paths]


def _why(reason: object) -> str | None:
    return next((text for key, text in LEFT_OUT.items() if key == reason), None)


async def parse_small(
    children: Children, documents: Sequence[tuple[Path, Parser]], limits: ParseLimits
) -> list[SmallText | None]:
    """Parse several small texts in one process; None for each that needs its own process.

    Only for parsers of plain text: a document that harmed the process would affect the others.
    """
    calls = [[str(path.absolute()), parser.target] for path, parser in documents]
    bounds = ChildLimits(
        limits.memory_mb, _SMALL_CPU_SECONDS, _SMALL_SECONDS, output_bytes=len(calls) * _SMALL_ANSWER_BYTES
    )
    try:
        ahead = _ahead(*(target for _, target in calls))
        reach = Reach([path for path, _ in calls] + _packages(*(target for _, target in calls)))
        answers = await children.call(
            _EACH, calls, limits.max_text_chars, limits=bounds, ahead=ahead, reach=reach
        )
    except ChildFailed:
        return [None] * len(calls)
    if not isinstance(answers, list) or len(answers) != len(calls):
        return [None] * len(calls)
    return [_small(answer) for answer in answers]


def _small(answer: object) -> SmallText | None:
    if not isinstance(answer, str):
        return None
    sink = io.BytesIO(answer.encode())
    try:
        return SmallText(list(blocks_in(sink)), trailer_in(sink).properties)
    except UnparsableDocument:
        return None


def _arguments(path: Path, parser: Parser, limits: ParseLimits, sink: Path) -> tuple[Any, ...]:
    """The arguments of `child.parse_into`."""
    return str(path.absolute()), parser.target, str(sink.absolute()), limits.max_text_chars, list(limits.ocr)


def _limits(limits: ParseLimits) -> ChildLimits:
    return ChildLimits(
        memory_mb=limits.memory_mb,
        cpu_seconds=limits.cpu_seconds,
        wall_seconds=limits.wall_seconds,
        file_bytes=limits.max_text_chars * _BYTES_PER_CHAR + _FILE_SLACK_BYTES,
    )


def _explained(error: ChildFailed, parser: Parser) -> Exception:
    """The error in our words; a plugin's parser may set one of our codes on its own exception."""
    if error.code == SLOW:
        return SlowDocument()
    if error.reason == "unavailable" or error.code == UNAVAILABLE:
        return ParserUnavailable(
            f"parser {parser.name} ({parser.target}) cannot be started; its log line says why"
        )
    return UnparsableDocument(_code(error), str(error))


def _code(error: ChildFailed) -> Code:
    code = next((code for code in DETAILS if code == error.code), None)
    return code or _CODES.get(error.reason, "corrupt")
