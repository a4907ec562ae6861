"""Lines and server-sent events, cut at every possible place."""

from __future__ import annotations

import pytest

from builtin_plugins.models.runtimes.errors import AnswerMalformed
from builtin_plugins.models.runtimes.wire import LineSplitter, SseDecoder

STREAM = (
    "\ufeff: comment\r\nevent: x\r\ndata: grüß 🙂\r\n\r\n"
    "data:no space\n\ndata: two\ndata:  lines\n\n"
    "id: 7\rdata: cr only\r\r\n\n\n: nothing\n\ndata\n\ndata: last"
).encode()
EVENTS = ["grüß 🙂", "no space", "two\n lines", "cr only", "", "last"]


def decode(chunks: list[bytes]) -> list[str]:
    decoder = SseDecoder(1000)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()


@pytest.mark.parametrize("at", range(len(STREAM) + 1))
def test_events_are_the_same_wherever_a_chunk_ends(at: int) -> None:
    """CRLF, CR, LF, comments, a BOM, several data lines and an unfinished last event, cut at each byte."""
    assert decode([STREAM[:at], STREAM[at:]]) == EVENTS


def test_events_are_the_same_byte_by_byte() -> None:
    assert decode([STREAM[at : at + 1] for at in range(len(STREAM))]) == EVENTS


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_lines_of_all_ends(size: int) -> None:
    data = b"a\r\nb\n\nc\rd\r\n\r\ne"
    splitter = LineSplitter(100)
    lines = [line for at in range(0, len(data), size) for line in splitter.feed(data[at : at + size])]
    assert [*lines, *splitter.close()] == [b"a", b"b", b"", b"c", b"d", b"", b"e"]


def test_a_line_is_bounded_whether_it_ends_or_not() -> None:
    splitter = LineSplitter(4)
    assert splitter.feed(b"1234\n1234\n12") == [b"1234", b"1234"]
    with pytest.raises(AnswerMalformed):
        splitter.feed(b"345")
    with pytest.raises(AnswerMalformed):
        LineSplitter(4).feed(b"1\n12345\n")


def test_an_event_of_many_lines_is_bounded() -> None:
    decoder = SseDecoder(50)
    with pytest.raises(AnswerMalformed):
        for _ in range(10):
            decoder.feed(b"data: 1234567890\n")
