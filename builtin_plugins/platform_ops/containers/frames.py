"""Splits the engine's log streams into lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from dataclasses import dataclass
from typing import Literal

Stream = Literal["stdout", "stderr"]
_STREAMS: dict[int, Stream] = {0: "stdout", 1: "stdout", 2: "stderr"}
_HEAD = 8
_LONGEST_FRAME = 4 * 1024 * 1024
LONGEST_LINE = 2000


class BrokenStream(Exception):
    """The data is not an engine's log stream."""


@dataclass(frozen=True)
class ContainerLine:
    """A line that a container wrote."""

    stream: Stream
    text: str


async def lines_of(pieces: AsyncIterable[bytes], *, multiplexed: bool) -> AsyncGenerator[ContainerLine, None]:
    """The lines of a stream as they become complete, and the rest at its end.

    A container with a terminal has one plain stream; any other has frames of two streams, each frame with a
    header of eight bytes. Frames and pieces need not end where lines do. Raises BrokenStream.
    """
    texts: dict[Stream, _Text] = {"stdout": _Text(), "stderr": _Text()}
    frames = _Frames() if multiplexed else None
    async for piece in pieces:
        parts = _plain(piece) if frames is None else frames.add(piece)
        for stream, content in parts:
            for text in texts[stream].add(content):
                yield ContainerLine(stream, text)
    for stream, rest in texts.items():
        if rest.waiting:
            yield ContainerLine(stream, _readable(bytes(rest.waiting)))


def _plain(piece: bytes) -> Iterator[tuple[Stream, bytes]]:
    yield "stdout", piece


class _Frames:
    """The contents of frames, passed on as they arrive."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._stream: Stream = "stdout"
        self._left = 0

    def add(self, piece: bytes) -> Iterator[tuple[Stream, bytes]]:
        view = memoryview(piece)
        while view:
            if self._left:
                content, view = bytes(view[: self._left]), view[self._left :]
                self._left -= len(content)
                yield self._stream, content
                continue
            missing = _HEAD - len(self._head)
            self._head += view[:missing]
            view = view[missing:]
            if len(self._head) == _HEAD:
                self._begin(bytes(self._head))
                self._head.clear()

    def _begin(self, head: bytes) -> None:
        size = int.from_bytes(head[4:], "big")
        if head[0] not in _STREAMS or head[1:4] != b"\0\0\0" or size > _LONGEST_FRAME:
            raise BrokenStream("the engine sent something other than log frames")
        self._stream, self._left = _STREAMS[head[0]], size


class _Text:
    """One stream of bytes, split into lines; only the beginning of a very long line is kept."""

    def __init__(self) -> None:
        self.waiting = bytearray()

    def add(self, content: bytes) -> Iterator[str]:
        *complete, rest = content.split(b"\n")
        for part in complete:
            self._keep(part)
            yield _readable(bytes(self.waiting))
            self.waiting.clear()
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        self.waiting += part[: max(0, 4 * LONGEST_LINE - len(self.waiting))]


def _readable(line: bytes) -> str:
    return line.rstrip(b"\r").decode(errors="replace")[:LONGEST_LINE]
