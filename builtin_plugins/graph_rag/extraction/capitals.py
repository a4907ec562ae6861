"""Names in scripts with two cases: runs of capitalized words, and acronyms.

A capital at the start of a sentence, or on a German noun, does not make a name: such a word alone is left out
unless it is also capitalized where that isn't required.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import regex

from builtin_plugins.graph_rag.extraction.labels import label_of
from builtin_plugins.graph_rag.extraction.mentions import folded
from builtin_plugins.graph_rag.extraction.spans import TextSpan
from builtin_plugins.graph_rag.extraction.wordlists import (
    BEFORE_NOUN,
    CALENDAR,
    GERMAN,
    HONORIFICS,
    JOINERS,
    NOUN_ENDINGS,
    OPENERS,
    word_set,
)

_MOST_WORDS = 8
_LONGEST = 60
_SHORT = r"(?:(?:Dr|Mrs?|Ms|St|Prof|Rev|Gen|Col|Sgt|Lt|Capt|Sen|Gov|Jr|Sr|Mt|Ft)\.(?= )|(?:[A-Z]\.){2,6})|"
_ASCII_WORD = re.compile(
    rf"(?<![\w'’.@/-])(?:{_SHORT}[A-Z](?:\.(?=[A-Z ]|$)"
    r"|[a-zA-Z0-9]{0,60}(?:['’.&-][A-Za-z0-9]{2,40}|['’-][A-Z]){0,4}))"
)
_ANY_WORD = regex.compile(
    rf"(?<![\p{{L}}\p{{M}}\p{{N}}_'’.@/-])(?:{_SHORT}\p{{Lu}}(?:\.(?=[\p{{Lu}} ]|$)"
    r"|[\p{L}\p{M}\p{N}]{0,60}(?:['’.&-][\p{L}\p{N}]{2,40}|['’-]\p{Lu}){0,4}))"
)
_GAP = re.compile(r"[ \t\xa0]+|[ \t\xa0]*\n[ \t\xa0]*(?!\n)")
_JOINED = regex.compile(r"\s(?:(\p{Ll}{1,5}\.?)\s)?(?:(\p{Ll}{2,3})\s)?|\s&\s|-|['’]", regex.V0)
_SUBJECT = re.compile(
    r"\s*([^\W\d_a-z][^.,;:()\n]{1,60}?)\s+(?:\([^()\n]{0,200}\)\s+)?"
    r"(?:is|was|are|were|ist|war|est|était|es|fue|era|è)\s+(?:an?|the|one|ein|eine|der|die|das|une?|le|la|una?|il)\b"
)
_POSSESSIVE = re.compile(r"['’]s?$")
_SENTENCE_END = re.compile(
    r"(?:[.!?…:;。！？]['\"”’»)\]]*\s+|\n\s*|^\s*|[\"“„«‘(\[]|[•*#>|–—-]\s+)['\"“„«‘(\[]*$"
)
_NAMING = re.compile(r"\s*(?:\(|,|—|–|(?:is|was|are|were|has|had|ist|war|est|était|es|fue|è|era|é)\b)")
_LOOK_BACK = 12
_BEFORE_PERSON = word_set("dr. mr. mrs. ms. prof. rev. gen. col. sgt. lt. capt. sen. gov.")
_TITLES = word_set("dr. mr. mrs. ms. st. prof. rev. gen. col. sgt. lt. capt. sen. gov. jr. sr. mt. ft.")


class _Word(NamedTuple):
    start: int
    end: int
    opens: bool  # opens a sentence, or is where a capital means nothing


def capitalized(text: str, *, german: bool | None = None) -> Iterator[TextSpan]:
    """Runs of capitalized words; `german` tells, if known, whether the text is German."""
    words = list(_words(text))
    if not words:
        return
    every_noun = is_german(text) if german is None else german
    runs = list(_runs(text, words))
    sure = {
        word
        for run in runs
        for word in text[run[0].start : run[-1].end].split()
        if len(run) > 1 or not run[0].opens
    }
    for run in runs:
        if name := _name_words(text, run, sure, every_noun):
            person = _as_person(text, name)
            start, end = person[0].start, person[-1].end
            end -= len(possessive[0]) if (possessive := _POSSESSIVE.search(text, start, end)) else 0
            yield TextSpan(start, end, "PERSON" if len(person) < len(name) else label_of(text, start, end))


def subject(text: str) -> Iterator[TextSpan]:
    """What an article's first sentence is about, up to its verb: `Kiss and Tell is a ...`."""
    if (match := _SUBJECT.match(text)) and _names(match[1]):
        yield TextSpan(match.start(1), match.end(1), label_of(text, match.start(1), match.end(1)))


def _names(written: str) -> bool:
    """Whether its longer words are capitalized, and more than one isn't a pronoun or the like."""
    words = written.split()
    capitals = [word for word in words if word[0].isupper()]
    small = [word for word in words if not word[0].isupper()]
    if not 1 < len(words) <= _MOST_WORDS or not capitals or any(len(word) > 4 for word in small):
        return False
    return folded(words[0]) not in OPENERS or len(capitals) > 1


def is_german(text: str) -> bool:
    """Whether a text is German, by its function words."""
    words = text[:2000].split()
    return bool(words) and sum(word in GERMAN for word in words) > 0.12 * len(words)


def _words(text: str) -> Iterator[_Word]:
    rule = _ASCII_WORD if text.isascii() else _ANY_WORD
    for match in rule.finditer(text):
        start, end = match.span()
        before = text[max(0, start - _LOOK_BACK) : start]
        yield _Word(start, end, start == 0 or _opens(text, start, before))


def _opens(text: str, start: int, before: str) -> bool:
    if before[-1:].isspace() and (last := before.rstrip()[-1:]) and (last.isalnum() or last == ","):
        return "\n" in before[len(before.rstrip()) :]
    if before.split()[-1:] and before.split()[-1].casefold() in _TITLES:
        return False
    return _SENTENCE_END.search(before) is not None


def _runs(text: str, words: list[_Word]) -> Iterator[list[_Word]]:
    run: list[_Word] = []
    for word in words:
        if run and (len(run) >= _MOST_WORDS or not _joins(text, run, word)):
            yield run
            run = []
        run.append(word)
    if run:
        yield run


def _joins(text: str, run: list[_Word], word: _Word) -> bool:
    last = run[-1]
    if not 0 < word.start - last.end <= _LONGEST // 4 or text[last.end - 2 : last.end] in ("'s", "’s"):
        return False
    between = text[last.end : word.start]
    if between == " ":
        return not (word.opens and (text[last.end - 1] != "." or _is_opener(text, word)))
    if between == ". " and last.end - last.start == 1:
        return True
    if not (match := _JOINED.fullmatch(between)) or word.opens:
        return False
    if match[1] is None and match[2] is None:
        return "\n" not in between
    small = [part for part in match.groups() if part]
    return small[0] in JOINERS and all(part in JOINERS or part in ("the", "las", "los") for part in small[1:])


def _as_person(text: str, run: list[_Word]) -> list[_Word]:
    """The run without `Dr.` and the like before a name."""
    while len(run) > 1 and text[run[0].start : run[0].end].casefold() in _BEFORE_PERSON:
        run = run[1:]
    return run


def _name_words(text: str, run: list[_Word], sure: set[str], every_noun: bool) -> list[_Word]:
    """The run without words that are capitalized for other reasons; empty if nothing is left."""
    while run and (_is_opener(text, run[0]) or _is_calendar(text, run[0])):
        run = run[1:]
    while run and _is_calendar(text, run[-1]):
        run = run[:-1]
    if not run or (len(run) == 1 and not _stands_alone(text, run[0], sure, every_noun)):
        return []
    return run


def _is_opener(text: str, word: _Word) -> bool:
    written = text[word.start : word.end]
    plain = _POSSESSIVE.sub("", folded(written))
    return plain in OPENERS and (word.opens or plain in ("the", "i", "a") or not written.isupper())


def _is_calendar(text: str, word: _Word) -> bool:
    return text[word.start : word.end].lower() in CALENDAR


def _stands_alone(text: str, word: _Word, sure: set[str], every_noun: bool) -> bool:
    written = text[word.start : word.end]
    bare = _POSSESSIVE.sub("", written)
    if len(bare) < 2 or bare.casefold() in HONORIFICS:
        return False
    if not bare[1:].islower():
        return True  # an acronym, or a name with an inner capital
    if every_noun:
        return not _is_noun(text, word, bare)
    if not word.opens:
        return True
    return written != bare or bare in sure or (word.start == 0 and _NAMING.match(text, word.end) is not None)


def _is_noun(text: str, word: _Word, bare: str) -> bool:
    """Whether a single German word is a common noun, by an article, an adjective or its ending."""
    if bare.endswith(NOUN_ENDINGS):
        return True
    before = text[max(0, word.start - 30) : word.start].split()
    if word.opens or not before:
        return _NAMING.match(text, word.end) is None
    last = before[-1]
    return last.casefold() in BEFORE_NOUN or (
        last.islower() and last.endswith(("en", "er", "es", "em", "e")) and len(last) > 3
    )
