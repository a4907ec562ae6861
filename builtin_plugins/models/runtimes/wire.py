"""Splits byte streams into lines and server-sent events, whatever chunks they arrive in."""

from __future__ import annotations

import re

from builtin_plugins.models.runtimes.errors import AnswerMalformed

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")


class LineSplitter:
    """Cuts bytes into lines at LF, CRLF or CR.

    No byte of a multi-byte UTF-8 sequence is CR or LF, so whole lines decode safely wherever chunks end.
    Raises ``AnswerMalformed`` when a line grows past ``max_line_bytes``.
    """

    def __init__(self, max_line_bytes: int) -> None:
        self._max = max_line_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without line breaks."""
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        head, *rest = _LINE_END.split(chunk)
        self._keep(head)
        if not rest:
            return []
        lines = [*self.close(even_empty=True), *rest[:-1]]
        self._keep(rest[-1])
        return [self._bounded(line) for line in lines]

    def close(self, *, even_empty: bool = False) -> list[bytes]:
        """The text after the last line break, if any."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return [rest] if rest or even_empty else []

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max:
            raise AnswerMalformed(f"a line is longer than {self._max} bytes")
        self._parts.append(part)

    def _bounded(self, line: bytes) -> bytes:
        if len(line) > self._max:
            raise AnswerMalformed(f"a line is longer than {self._max} bytes")
        return line


class SseDecoder:
    """Server-sent events (WHATWG HTML, section 9.2.6), reduced to the data of each event.

    Raises ``AnswerMalformed`` when one event's data grows past ``max_event_bytes``.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._lines = LineSplitter(max_event_bytes)
        self._max = max_event_bytes
        self._data: list[bytes] = []
        self._size = 0
        self._first = True

    def feed(self, chunk: bytes) -> list[str]:
        """The data of each event that this chunk completes, its ``data`` lines joined by LF."""
        return self._events(self._lines.feed(chunk))

    def close(self) -> list[str]:
        """The last event of a stream that ended without a blank line.

        The standard drops it, but some runtimes end with ``data: [DONE]`` and no blank line.
        """
        return self._events([*self._lines.close(), b""])

    def _events(self, lines: list[bytes]) -> list[str]:
        return [event for line in lines if (event := self._take(line)) is not None]

    def _take(self, line: bytes) -> str | None:
        if self._first:
            line, self._first = line.removeprefix(_BOM), False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        if name == b"data":
            self._keep(value.removeprefix(b" "))
        return None

    def _keep(self, value: bytes) -> None:
        self._size += len(value)
        if self._size > self._max:
            raise AnswerMalformed(f"an event is larger than {self._max} bytes")
        self._data.append(value)

    def _dispatch(self) -> str | None:
        if not self._data:
            return None
        event = b"\n".join(self._data).decode("utf-8", errors="replace")
        self._data.clear()
        self._size = 0
        return event
