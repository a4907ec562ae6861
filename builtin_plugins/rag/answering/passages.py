"""What answering works on: passages that retrieval found, and the answer made of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved chunk, in the order of the response's ``sources``: the first is cited as [1].

    ``score`` is retrieval's relevance; ``near`` is the similarity of the whole chunk to the question, on the
    model's own scale, and ``matched`` the share of a full match by words, both None where nobody measured
    them. ``language`` is that of its document (ISO 639), as far as it is known. ``char_start`` and
    ``char_end`` are the chunk's place in its document's text, in characters; ``page`` counts from 1 and is
    None where the format has no pages.
    """

    text: str
    source: str
    score: float
    chunk_id: str
    document_id: str
    page: int | None = None
    char_start: int = 0
    char_end: int = 0
    near: float | None = None
    matched: float | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and the 1-based positions of the passages that it cites, ascending.

    Where ``supported`` is false the text says that the documents hold no answer, and nothing is cited.
    ``confidence`` is the probability that the answer is right, 0 for a refusal. ``unshown`` is the passage
    that answers where it may not be quoted, as it is not shown: there is no text then.
    """

    text: str
    cited: tuple[int, ...]
    supported: bool
    confidence: float = 0.0
    unshown: int | None = None
