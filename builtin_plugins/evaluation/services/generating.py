"""Makes questions from documents without a model: from their headings, definitions and figures.

Headings work in every language; definitions and figures are found in English sentences. The expected result
is the passage itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from builtin_plugins.rag import api as rag

_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.{2,118}?)[ \t#]*$", re.MULTILINE)
# Possessive: no backtracking, so that a row of numbers takes no longer than prose.
_SENTENCE = re.compile(r"(?<![^\s.!?])[A-Z](?:[^.!?\n|]|(?<=\d)\.(?=\d)){10,300}+[.!?](?=\s|$)")
_DEFINITION = re.compile(
    r"(?P<term>(?:An? )?[A-Z][\w’'-]*(?: [\w’'-]+){0,4}) (?:is|are|means|refers to) "
    r"(?P<what>(?:an?|the|any) .{10,200})[.!?]"
)
_FIGURE = re.compile(
    r"(?P<subject>(?:The|Each|Every) [^,;:\d]{4,80}?) (?P<verb>is|are|was|were) "
    r"[^,;:]{0,60}?(?P<figure>\d[\d.,:]*\d|\d)\b"
)
_PRONOUNS = frozenset(
    {"it", "this", "that", "there", "these", "those", "he", "she", "they", "we", "you", "what"}
)


@dataclass(frozen=True)
class DraftQuestion:
    """A question made from a passage."""

    question: str
    document_id: str
    passage_id: str
    answers: tuple[str, ...] = ()


def make_questions(document_id: str, name: str, passages: Iterable[rag.Passage]) -> Iterator[DraftQuestion]:
    """Questions about a document, in its order; several about one passage are possible."""
    title = re.sub(r"\.\w{1,5}$", "", name).replace("_", " ").replace("-", " ")
    for passage in passages:
        for text, answers in _of_text(title, passage.text):
            yield DraftQuestion(text, document_id, passage.chunk_id, answers)


def _of_text(title: str, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for heading in _HEADING.finditer(text):
        yield f"What does {title} say about {heading[1].strip()}?", ()
    for sentence in _SENTENCE.findall(text):
        figure = _FIGURE.match(sentence)
        if figure is not None:
            subject = figure["subject"][0].lower() + figure["subject"][1:]
            yield f"What {figure['verb']} {subject}?", (figure["figure"].rstrip(".,:"),)
            continue
        definition = _DEFINITION.fullmatch(sentence)
        if definition is not None and definition["term"].split()[0].lower() not in _PRONOUNS:
            yield f"What is meant by {definition['term']}?", (definition["what"],)
