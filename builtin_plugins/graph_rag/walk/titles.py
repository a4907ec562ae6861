"""Names of what a passage is about: its headings, the subject of its first sentence, its document's title."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from builtin_plugins.graph_rag.extraction.capitals import subject
from builtin_plugins.graph_rag.extraction.mentions import Mention, key_of
from builtin_plugins.graph_rag.walk.keys import title_keys_of

_LONGEST = 100
# Possessive: otherwise long runs of blanks would be tried at every length, which takes minutes.
_HEADING = re.compile(r"^#{1,6}[ \t]++(.{1,100}?)[ \t]*+#*+$", re.MULTILINE)
_LABELLED = re.compile(r"\s*(?:[Tt]itle:[ \t]*)?([^\W_][^:\n.!?]{1,80}):\s")
_DOTTED = re.compile(r"\s*([^\W_a-z][^.\n!?]{1,80})\.\s+(?=[^\Wa-z])")
_BRACKETS = re.compile(r"(?<!\s)\s*+[(（\[][^()（）\[\]]*+[)）\]]\s*+$")
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_NUMBERED = re.compile(
    r"(?:doc|docs|document|passage|file|article|text|chunk|page|scan|img|image|untitled|upload|item|para"
    r"|paragraph|part|entry|record|sample|test|[a-z])?[\W_]*[\da-f]*(?:[\W_]+[\da-f]+)*",
    re.IGNORECASE,
)
_START = re.compile(r"[\s#*\"'“”„«《「『(]*(?:The\s|Dr\.\s)?")
_SENTENCE = re.compile(r"[.!?。！？;,:]$")


def title_keys(text: str, mentions: Sequence[Mention] = (), document: str | None = None) -> list[str]:
    """Keys of the names that the passage is about, with and without brackets that follow them.

    `mentions` are the passage's: a name of several words at its beginning is its subject.
    `document` is the title or file name of the document that begins with this passage.
    """
    keys: dict[str, None] = {}
    if (first := _first(text, mentions)) is not None:
        keys[first.key] = None
    for title in _titles(text, document):
        for form in (title, _BRACKETS.sub("", title)):
            if key := key_of(form):
                keys[key] = None
        keys |= dict.fromkeys(title_keys_of(title))
    return list(keys)


def _first(text: str, mentions: Sequence[Mention]) -> Mention | None:
    first = next(iter(mentions), None)
    if first is None or first.label == "DATE" or not _START.fullmatch(text, 0, first.start):
        return None
    return first if " " in first.key or not first.key.isascii() else None


def _titles(text: str, document: str | None) -> Iterator[str]:
    if document is not None and (named := _of_file(document)):
        yield named
    yield from _HEADING.findall(text)
    line, _, rest = text.lstrip().partition("\n")
    body = text
    if rest.strip() and _is_heading(line):
        yield line.strip().lstrip("#").strip()
        body = rest.lstrip()
    elif (match := _LABELLED.match(text)) or ((match := _DOTTED.match(text)) and _is_name(match[1])):
        yield match[1]
        body = text[match.end() :]
    for span in subject(body):
        yield body[span.start : span.end]


def _is_name(title: str) -> bool:
    """Whether a sentence without a verb is a title: its longer words are capitalized."""
    words = [word for word in _BRACKETS.sub("", title).split() if len(word) > 3]
    return all(word[0].isupper() or not word[0].isalpha() for word in words)


def _of_file(name: str) -> str:
    """A title from a file's name; empty if that is just a number, a digest or the like."""
    plain = _ENDING.sub("", name.rpartition("/")[2]).replace("_", " ").strip()
    return "" if _NUMBERED.fullmatch(plain) else plain


def _is_heading(line: str) -> bool:
    line = line.strip()
    return 0 < len(line) <= _LONGEST and not _SENTENCE.search(line) and any(map(str.isalnum, line))
