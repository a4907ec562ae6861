"""Answers about the documents themselves, by what is known of them: their number, names and headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from builtin_plugins.extractive_answers.overview_questions import OverviewQuestion, plain_text
from builtin_plugins.rag.api import (
    DocumentOverview,
    DocumentShelf,
    Passage,
    QuotablePassage,
    ShelvedDocument,
    quoted,
)

_SHOWN = 10
"""Documents of a list."""
_COMPARED = 2000
"""Documents, newest first, among which the subject of a summary is looked for."""
_OPENED = 8
"""Documents whose first passage is read, if no name has all words of the subject."""
_READ = 40
"""Passages of a document from which a summary takes its headings."""
_SECTIONS = 8
_LONGEST = 240
"""Characters quoted of each document or section."""
_WORD = re.compile(r"\w+")
_LITTLE = frozenset(["the", "a", "an", "of", "our", "my", "this", "that", "file", "document"])


async def answer_overview(question: OverviewQuestion, shelf: DocumentShelf) -> DocumentOverview | None:
    """The answer to a question about the documents themselves; None to a summary of what is none of them."""
    if question.kind == "summary":
        return await _summary(question, shelf)
    if question.kind == "changes":
        return await _changes(question, shelf)
    return await _contents(question, shelf)


async def _contents(question: OverviewQuestion, shelf: DocumentShelf) -> DocumentOverview:
    """How many documents there are, of each kind if there are several, and what the newest begin with."""
    kinds, words = await shelf.kinds(), question.words
    each = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common()) if len(kinds) > 1 else ""
    number = f"{words.number}: {kinds.total()}" + (f" ({each})" if each else "")
    if not kinds:
        return DocumentOverview(question.kind, f"{number}.{_reason(question, shelf)}")
    listed, passages = await _listed(shelf, lambda document, beginning: f"{document.name}: {beginning}")
    return DocumentOverview(question.kind, "\n".join([f"{number}. {words.contents}:", *listed]), passages)


async def _changes(question: OverviewQuestion, shelf: DocumentShelf) -> DocumentOverview:
    """The documents that are new or were replaced last, with the day and the version."""

    def line(document: ShelvedDocument, _: str) -> str:
        version = f" ({question.words.version} {document.version})" if document.version > 1 else ""
        return f"{document.name}, {document.uploaded_at:%Y-%m-%d}{version}"

    listed, passages = await _listed(shelf, line)
    first = f"{question.words.changes}:{'' if listed else _reason(question, shelf)}"
    return DocumentOverview(question.kind, "\n".join([first, *listed]), passages)


def _reason(question: OverviewQuestion, shelf: DocumentShelf) -> str:
    """Why there may be no document: the question's filter."""
    return f" {question.words.filtered}" if shelf.is_filtered else ""


async def _listed(
    shelf: DocumentShelf, line: Callable[[ShelvedDocument, str], str]
) -> tuple[list[str], list[Passage]]:
    """A line for each of the newest documents, from it and its beginning, and the passages that they cite."""
    lines, passages = list[str](), list[Passage]()
    for document in await shelf.latest(_SHOWN):
        opening = next(iter(await shelf.opening(document, 1)), None)
        if opening is None:
            continue
        passages.append(opening.passage)
        lines.append(f"- {line(document, _beginning(opening))} [{len(passages)}]")
    return lines, passages


async def _summary(question: OverviewQuestion, shelf: DocumentShelf) -> DocumentOverview | None:
    """The first sentence, then each heading with what stands first below it; None without such a document."""
    document = await _named(_words(question.subject), shelf)
    if document is None:
        return None
    lines, passages = [f"{question.words.summary} {document.name}:"], list[Passage]()
    for passage in await shelf.opening(document, _READ):
        sections = list(_sections(passage, is_first=not passages))
        if not sections or len(lines) > _SECTIONS:
            continue
        passages.append(passage.passage)
        lines += [f"- {one} [{len(passages)}]" for one in sections]
    return DocumentOverview("summary", "\n".join(lines[: _SECTIONS + 1]), passages) if passages else None


async def _named(subject: frozenset[str], shelf: DocumentShelf) -> ShelvedDocument | None:
    """The newest document whose name, or name and first heading, have all words of the subject."""
    if not subject:
        return None
    near = list[tuple[int, ShelvedDocument]]()
    for document in await shelf.latest(_COMPARED):
        shared = len(subject & _words(document.name))
        if shared == len(subject):
            return document
        if shared:
            near.append((shared, document))
    for _, document in sorted(near, key=lambda one: -one[0])[:_OPENED]:
        titles = _words(document.name)
        for passage in await shelf.opening(document, 1):
            titles |= _words(next((one.text for one in passage.sentences if one.is_heading), ""))
        if subject <= titles:
            return document
    return None


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(plain_text(text).replace("_", " "))) - _LITTLE


def _beginning(passage: QuotablePassage) -> str:
    """The first sentence that is no heading; a heading, if there is nothing else."""
    texts = [one.text for one in passage.sentences if not one.is_heading] or [
        one.text for one in passage.sentences
    ]
    return _short(texts[0]) if texts else ""


def _sections(passage: QuotablePassage, *, is_first: bool) -> Iterator[str]:
    """Each heading of a passage with the sentence below it; of the first passage, its first sentence, too."""
    under: str | None = None
    for sentence in passage.sentences:
        if sentence.is_heading:
            under = sentence.text
        elif under is not None:
            yield _short(f"{under.rstrip(' :.')}: {sentence.text}")
            under, is_first = None, False
        elif is_first:
            yield _short(sentence.text)
            is_first = False


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return quoted(text)
    return f"{quoted(text[: text.rfind(' ', 0, _LONGEST)]).rstrip('.')} …"
