"""The parser process: limits itself, imports one parser, writes its text to the sink, and says how it ended.

Run as `python -m builtin_plugins.rag.parsing.child REQUEST`. Imports little, since it starts once per
document.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import importlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NoReturn, TextIO

from builtin_plugins.rag.parsing.blocks import SEPARATOR, Block, Code, UnparsableDocument
from builtin_plugins.rag.parsing.cleaning import clean, pieces
from builtin_plugins.rag.parsing.protocol import (
    EXIT_CODES,
    EXIT_UNAVAILABLE,
    MAX_BLOCK_CHARS,
    Request,
    Trailer,
    dump_block,
    dump_trailer,
)

_JOINED_CHARS: Final = 16_384
_PR_SET_PDEATHSIG: Final = 1
_FILE_SLACK_BYTES: Final = 1024 * 1024
_BYTES_PER_CHAR: Final = 5
# The hard limit, which kills without a name, stands behind the soft one, which the parent recognises.
_CPU_GRACE_SECONDS: Final = 2


def main(argument: str) -> NoReturn:
    """Parse one document and leave; the exit status is the answer, the standard error is for the log."""
    request = Request.load(argument)
    _die_with(request.parent)
    _limit(request)
    status = _run(request)
    # Straight out: no destructor or thread of a foreign library can hold up what is decided.
    os._exit(status)


def _run(request: Request) -> int:
    try:
        function = _load(request.target)
    except MemoryError:
        return EXIT_CODES["memory"]
    except Exception:  # noqa: BLE001 - a boundary: any import may fail in any way
        _log_error()
        return EXIT_UNAVAILABLE
    try:
        _write(function(Path(request.path)), request)
    except MemoryError:
        return EXIT_CODES["memory"]
    except BaseException as error:  # noqa: BLE001 - a boundary: what a parser raises about a file is the file's fault
        _log_error()
        return EXIT_CODES[_code(error)]
    return 0


def _log_error() -> None:
    # The standard error is a file under the same size limit as the sink, and may be full.
    with contextlib.suppress(OSError):
        traceback.print_exc(limit=-20)
        sys.stderr.flush()


def _load(target: str) -> Callable[[Path], Iterable[object]]:
    module, _, name = target.partition(":")
    function: Callable[[Path], Iterable[object]] = getattr(importlib.import_module(module), name)
    return function


def _code(error: BaseException) -> Code:
    """Return an error's code; a foreign parser may set `code` on an exception of its own."""
    code = getattr(error, "code", None)
    if isinstance(code, str) and code in EXIT_CODES:
        return code
    return "too_large" if isinstance(error, OSError) and error.errno == errno.EFBIG else "corrupt"


def _write(blocks: Iterable[object], request: Request) -> None:
    descriptor = os.open(request.sink, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        sink = _Sink(file, request.max_text_chars)
        for block in blocks:
            sink.add(_block(block))
        sink.finish()


def _block(value: object) -> Block:
    """Accept what a foreign parser yields without importing us: a string, or a text and a page."""
    if isinstance(value, str):
        return Block(value)
    if isinstance(value, tuple) and len(value) == 2:
        text, page = value
        if isinstance(text, str) and (page is None or isinstance(page, int)):
            return Block(text, page)
    raise TypeError(f"a parser yields strings or (text, page) pairs, not {type(value).__name__}")


class _Sink:
    """Cleans, measures and writes blocks; small neighbours on one page share a line, long ones take several.

    Joining changes nothing: neighbours stand as far apart in one line as the separator puts two.
    """

    def __init__(self, file: TextIO, max_chars: int) -> None:
        self._file = file
        self._max_chars = max_chars
        self._chars = 0
        self._pages = 0
        self._page: int | None = None
        self._pending: list[str] = []
        self._pending_chars = 0

    def add(self, block: Block) -> None:
        """Take a block; raises `UnparsableDocument` when the text exceeds its limit."""
        self._pages = max(self._pages, block.page or 0)
        if block.page != self._page:
            self._flush()
            self._page = block.page
        for piece in pieces(block.text, MAX_BLOCK_CHARS):
            self._take(clean(piece))

    def _take(self, text: str) -> None:
        if not text:
            return
        self._chars += len(text) + (len(SEPARATOR) if self._chars else 0)
        if self._chars > self._max_chars:
            raise UnparsableDocument("too_large", f"more than {self._max_chars} characters of text")
        if self._pending_chars + len(text) > _JOINED_CHARS:
            self._flush()
        self._pending.append(text)
        self._pending_chars += len(text)

    def _flush(self) -> None:
        if self._pending:
            self._file.write(dump_block(Block(SEPARATOR.join(self._pending), self._page)))
        self._pending, self._pending_chars = [], 0

    def finish(self) -> None:
        """Write what is pending and the sums; raises `UnparsableDocument` when there was no text."""
        self._flush()
        if not self._chars:
            raise UnparsableDocument("no_text")
        self._file.write(dump_trailer(Trailer(self._chars, self._pages or None)))


def _die_with(parent: int) -> None:
    """Ask Linux to kill this process when its parent dies; leave at once if that has happened already."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(EXIT_UNAVAILABLE)


def _limit(request: Request) -> None:
    sink_bytes = request.max_text_chars * _BYTES_PER_CHAR + _FILE_SLACK_BYTES
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_FSIZE, sink_bytes)
    _set(resource.RLIMIT_AS, request.memory_mb * 1024 * 1024)
    _set(resource.RLIMIT_CPU, request.cpu_seconds, request.cpu_seconds + _CPU_GRACE_SECONDS)
    # Where memory runs out for the whole machine, the kernel takes the parser and not the platform.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _set(limit: int, soft: int, hard: int | None = None) -> None:
    ceiling = resource.getrlimit(limit)[1]
    wanted = soft if hard is None else hard
    allowed = wanted if ceiling == resource.RLIM_INFINITY else min(wanted, ceiling)
    # macOS refuses an address space limit; the wall clock still holds there.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(limit, (min(soft, allowed), allowed))


if __name__ == "__main__":
    main(sys.argv[1])
