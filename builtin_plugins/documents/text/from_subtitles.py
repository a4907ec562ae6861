"""Subtitles and transcripts (SubRip, WebVTT): what is said, in paragraphs with their time and speaker.

In the file, a sentence is spread over several cues, with a number and two times between its parts.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.detection import CUE_TIMES, WEBVTT
from builtin_plugins.documents.text.encoding import read_lines

_MAX_LINE_CHARS: Final = 32_768
_PARAGRAPH: Final = 400  # characters, after which it ends with the sentence
_LONGEST: Final = 1_000
_TIMES: Final = re.compile(CUE_TIMES)
_VOICE: Final = re.compile(r"<v(?:\.[^\s<>]{1,100})?\s++([^<>]{1,100})>")
_MARKUP: Final = re.compile(r"</?[a-zA-Z0-9][^<>]{0,200}>|\{\\[^{}]{1,100}\}")
_ENDS: Final = (".", "!", "?", "…", "。", "！", "？", "؟", "।")


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per paragraph: its start time and speaker, then what is said.

    A paragraph ends when the speaker changes, or with a sentence once it is long.
    """
    paragraph = _Paragraph()
    for time, speaker, text in _spoken_lines(path):
        if paragraph.is_over(speaker):
            yield paragraph.take()
        paragraph.add(time, speaker, text)
    yield paragraph.take()


class _Paragraph:
    """What one person says, until it is taken."""

    def __init__(self) -> None:
        self._head, self._speaker = "", ""
        self._lines: list[str] = []
        self._size = 0

    def is_over(self, speaker: str) -> bool:
        """Whether the next line begins another one."""
        if not self._lines:
            return False
        ends = self._lines[-1].endswith(_ENDS)
        return speaker != self._speaker or self._size > (_PARAGRAPH if ends else _LONGEST)

    def add(self, time: str, speaker: str, text: str) -> None:
        if not self._lines:
            self._head = f"{time} {speaker}:" if speaker else time
            self._speaker = speaker
        self._lines.append(text)
        self._size += len(text)

    def take(self) -> Block:
        block = Block("\n".join(filter(None, [self._head, " ".join(self._lines)])) if self._lines else "")
        self._lines, self._size = [], 0
        return block


def _spoken_lines(path: Path) -> Iterator[tuple[str, str, str]]:
    """Time, speaker and text of each line; a line that the next cue repeats is yielded once."""
    time = speaker = last = ""
    in_cue = False
    lines = read_lines(path, _MAX_LINE_CHARS)
    first = next(lines, "").removeprefix("\ufeff")
    is_webvtt = first.startswith(WEBVTT)
    for line in chain([first], lines):
        if times := _TIMES.match(line):
            time, speaker, in_cue = times[1], "", True
            continue
        if not (line if is_webvtt else line.strip()):  # YouTube has a space as the first line of a cue
            in_cue = False
            continue
        if not in_cue and (is_webvtt or line.strip().isdecimal()):
            continue  # a cue's number or name; in WebVTT also notes and styles
        if voice := _VOICE.search(line):
            speaker = " ".join(voice[1].split())
        text = " ".join(html.unescape(_MARKUP.sub("", line)).split())
        if text and text != last:
            yield time, speaker, text
            last = text
