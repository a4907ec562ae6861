"""Run a parser in a process of its own, with limits, and take nothing it says on trust."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple, NoReturn

from builtin_plugins.rag.parsing.blocks import Code, Parser, ParserUnavailable, UnparsableDocument
from builtin_plugins.rag.parsing.protocol import EXIT_CODES, Request, read_trailer

if TYPE_CHECKING:
    import asyncio

logger = logging.getLogger(__name__)

_CHILD: Final = "builtin_plugins.rag.parsing.child"
_LOGGED_BYTES: Final = 4_096
_CODES: Final[dict[int, Code]] = {status: code for code, status in EXIT_CODES.items()}
_SIGNALS: Final[dict[int, Code]] = {-signal.SIGXCPU: "timeout", -signal.SIGKILL: "memory"}
_MEMORY_SIGNS: Final = (b"MemoryError", b"bad_alloc", b"out of memory", b"Cannot allocate memory")


class ParseLimits(NamedTuple):
    """What one document may cost: address space, processor and clock seconds, characters of text."""

    memory_mb: int
    cpu_seconds: int
    wall_seconds: float
    max_text_chars: int


class ParsedDocument(NamedTuple):
    """A parsed document: its size in characters, its pages if it has any, and the file with its blocks."""

    char_count: int
    page_count: int | None
    sink: Path


async def parse(path: Path, parser: Parser, limits: ParseLimits, sink: Path) -> ParsedDocument:
    """Parse the file at `path` into `sink`; read it back with `read_blocks`.

    The parser gets no secret: an empty environment but for what Python needs. It dies with its limits, with
    cancellation, and with this process; its whole process group goes with it, and no sink is left behind.

    Raises `UnparsableDocument` when the document is at fault, `ParserUnavailable` when the installation is.
    """
    import asyncio

    errors = await asyncio.to_thread(_scratch, sink.parent)
    try:
        status = await _run(_request(path, parser, limits, sink), limits.wall_seconds, errors)
        if status:
            await asyncio.to_thread(_fail, status, parser, errors)
        trailer = await asyncio.to_thread(read_trailer, sink)
    except BaseException:
        await asyncio.to_thread(sink.unlink, missing_ok=True)
        raise
    finally:
        errors.close()
    return ParsedDocument(trailer.char_count, trailer.page_count, sink)


def _request(path: Path, parser: Parser, limits: ParseLimits, sink: Path) -> Request:
    return Request(
        path=str(path.absolute()),
        target=parser.target,
        sink=str(sink.absolute()),
        memory_mb=limits.memory_mb,
        cpu_seconds=limits.cpu_seconds,
        max_text_chars=limits.max_text_chars,
        parent=os.getpid(),
    )


def _scratch(folder: Path) -> IO[bytes]:
    """Open a nameless file for the standard error: bounded by the file size limit, and no pipe to drain."""
    return tempfile.TemporaryFile("w+b", dir=folder)


async def _run(request: Request, wall_seconds: float, errors: IO[bytes]) -> int:
    """Return the exit status of the parser process (negative: the signal that ended it)."""
    import asyncio

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _CHILD, request.dump()),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=errors,
        env=_environment(),
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(wall_seconds):
            return await process.wait()
    except TimeoutError as error:
        raise UnparsableDocument("timeout") from error
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process and all it started; a parser that has left may have left others behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _environment() -> dict[str, str]:
    """Return what a parser may know: where modules are, and to use one thread (each takes address space)."""
    modules = (str(Path(entry or ".").absolute()) for entry in sys.path)
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(modules),
        "PYTHONUTF8": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
    }


def _fail(status: int, parser: Parser, errors: IO[bytes]) -> NoReturn:
    said = _tail(errors)
    code = _code(status, said)
    logger.info(
        "parser %s ended with status %d (%s): %s", parser.name, status, code, said.decode("utf-8", "replace")
    )
    if code is None:
        raise ParserUnavailable(
            f"parser {parser.name} ({parser.target}) cannot be started; its log line says why"
        )
    raise UnparsableDocument(code)


def _code(status: int, said: bytes) -> Code | None:
    """Return why a process ended with this status; None when the reason lies in the installation.

    A crash inside a C library counts as the document's fault, or as memory when the library said so.
    """
    if status in _CODES:
        return _CODES[status]
    if status in _SIGNALS:
        return _SIGNALS[status]
    if any(sign in said for sign in _MEMORY_SIGNS):
        return "memory"
    return "corrupt" if status < 0 else None


def _tail(errors: IO[bytes]) -> bytes:
    size = errors.seek(0, 2)
    errors.seek(max(0, size - _LOGGED_BYTES))
    return errors.read()
