"""Leaves out what messages quote of others in the same file: each reply repeats the whole thread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from typing import Final

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.omissions import omit

_QUOTED: Final = re.compile(r"\s{0,3}>[>\s]*+")
# Before a quote, in ten languages: "On Monday, Ann wrote:".
_INTRODUCED: Final = re.compile(
    r"^.{0,300}\b(?:wrote|writes|schrieb|écrit|escribió|scritto|scrive|escreveu|schreef|skrev|napisał(?:\(a\))?|пишет|написал)"
    r"\b.{0,100}:$",
    re.IGNORECASE,
)
_SEPARATOR: Final = re.compile(
    r"^-{2,}\s*(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Mensaje original"
    r"|Messaggio originale|Mensagem original|Oorspronkelijk bericht|Oprindelig meddelelse"
    r"|Opprinnelig melding|Ursprungligt meddelande|Wiadomość oryginalna|Исходное сообщение)\s*-{2,}$",
    re.IGNORECASE,
)
"""Outlook's, with the whole history below it, unmarked."""
_HEADER: Final = re.compile(
    r"^(?:From|Sent|To|Cc|Subject|Von|Gesendet|An|Betreff|De|Envoyé|À|Objet|Enviado(?: el)?|Para|CC|Asunto"
    r"|Da|Inviato|A|Oggetto|Enviada(?: em)?|Assunto|Van|Verzonden|Aan|Onderwerp|Fra|Sendt|Til|Emne|Från"
    r"|Skickat|Till|Ämne|Od|Wysłano|Do|DW|Temat|От|Отправлено|Кому|Копия|Тема)\s?: ?\S.*$"
)
_DIGIT: Final = re.compile(r"\d")  # of the date: "The poet wrote:" introduces no history
_SENT: Final = re.compile(
    r"^(?:Sent|Gesendet|Envoyé|Enviad[oa](?: el| em)?|Inviato|Verzonden|Sendt|Skickat|Wysłano|Отправлено)\s?:"
)
_OWN_HEADER: Final = re.compile(r"^(?:Subject|Date): \S")
_FRAME_ENDS: Final = (":", "-")  # the patterns take long
_DATED: Final = re.compile(rf"{_SENT.pattern}|^Date: ")
_MOST_INTRODUCING: Final = 16  # lines
_MOST_LINES: Final = 1_000_000
_LEAST_CHARS: Final = 12
"""Shorter lines ("Thanks!") prove nothing, and go with the lines around them."""


class Quotes:
    """Remembers the lines of the messages so far, by their hash."""

    def __init__(self) -> None:
        self._earlier_lines = set[int]()

    def without(self, message: Iterable[Block]) -> Iterator[Block]:
        """Yield the blocks of the next message without the quoted lines that were there before, in another
        message or above in the same one.
        """
        reply = _Reply(self._earlier_lines)
        repeats = False
        for block in message:
            text = reply.unquoted(block.text)
            repeats = repeats or len(text) < len(block.text)
            yield block._replace(text=text)
        omit("quoted", int(repeats))
        if len(self._earlier_lines) < _MOST_LINES:
            self._earlier_lines |= reply.lines


def unframed_lines(text: str) -> list[str]:
    """The lines of a message without what only introduces them: headers with a date, "On Monday, Ann wrote:",
    Outlook's separators. Blank lines are left out; marks of quotes stay.
    """
    lines: list[str] = []
    run: list[str] = []  # lines that may be headers
    for line in [*text.splitlines(), ""]:
        words = line.strip(" \t\r>")
        if ":" in words and (_HEADER.match(words) or _OWN_HEADER.match(words)):
            run.append(line)
            continue
        if not any(_DATED.match(one.strip(" \t\r>")) for one in run):
            lines += run
        run = []
        if words and not _is_frame(words):
            lines.append(line)
    return lines


def has_quotes(text: str) -> bool:
    """Whether a message quotes others: marks, or what Outlook and other programs write above a quote."""
    lines = [line.strip(" \t\r") for line in text.splitlines()]
    return any(
        line[:1] == ">" or _SENT.match(line) or (_is_frame(line) and (line[-1] == "-" or _DIGIT.search(line)))
        for line in lines
    )


def _is_frame(words: str) -> bool:
    return words[-1:] in _FRAME_ENDS and bool(_INTRODUCED.match(words) or _SEPARATOR.match(words))


class _Reply:
    """One message, from line to line."""

    def __init__(self, earlier_lines: Set[int]) -> None:
        self.lines = set[int]()
        self._earlier_lines = earlier_lines
        self._before = ""  # the last line that isn't blank
        self._is_history = False
        """Whether unmarked lines are quoted, too, as below Outlook's separators."""

    def unquoted(self, text: str) -> str:
        """The next text of the message without its repetitions."""
        lines: list[str] = []
        is_repeated = False  # the last quoted line
        for line in text.split("\n"):
            mark = _QUOTED.match(line)
            words = " ".join((line[mark.end() :] if mark else line).split())
            key = hash(words)
            is_known = key in self._earlier_lines or key in self.lines
            self.lines.add(key)
            self._note(words, is_marked=bool(mark))
            if _is_introduction(words):  # goes with what it introduces
                is_repeated = False
            elif len(words) >= _LEAST_CHARS:
                is_repeated = is_known and bool(mark or self._is_history)
            elif not mark:  # an answer between quoted lines may be short
                is_repeated = is_repeated and self._is_history and (is_known or not words)
            if is_repeated:
                _drop_introduction(lines)
            else:
                lines.append(line)
        return "\n".join(lines) if len(lines) <= text.count("\n") else text

    def _note(self, words: str, *, is_marked: bool) -> None:
        if not words:
            return
        if not is_marked and not self._is_history:
            self._is_history = bool(
                _SEPARATOR.match(self._before)
                or (_INTRODUCED.match(self._before) and _DIGIT.search(self._before))
                or (_SENT.match(words) and _HEADER.match(self._before))
            )
        self._before = words


def _is_introduction(words: str) -> bool:
    return bool(_INTRODUCED.match(words) or _SEPARATOR.match(words) or _HEADER.match(words))


def _drop_introduction(lines: list[str]) -> None:
    """Remove what introduces a quote from the end: "On Monday, Ann wrote:", or a separator and headers."""
    bare = [line.strip(" \t\r>") for line in lines[-_MOST_INTRODUCING:]]
    while bare and not bare[-1]:
        bare.pop()
    start = len(bare)
    while start and _HEADER.match(bare[start - 1]):
        start -= 1
    if any(map(_SENT.match, bare[start:])):  # else an answer may begin with "A:"
        del bare[start:]
    if bare and (_INTRODUCED.match(bare[-1]) or _SEPARATOR.match(bare[-1])):
        bare.pop()
    while bare and not bare[-1]:
        bare.pop()
    del lines[max(0, len(lines) - _MOST_INTRODUCING) + len(bare) :]
