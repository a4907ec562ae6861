"""Documents of one kind, such as two companies' reports: an answer from one says which."""

from __future__ import annotations

from builtin_plugins.rag.answering.contradicting import subject_words
from builtin_plugins.rag.passages import Passage


def are_alike(quoted: Passage, start: int, other: Passage) -> bool:
    """Whether another document's passage could as well be meant as what is quoted at `start`: the documents'
    names share a word that is no number, or both stand under the same headings.
    """
    if quoted.document_id == other.document_id:
        return False
    section = quoted.section_at(start)
    is_same_section = section is not None and section in (
        other.section_at(0),
        *(one for _, one in other.sections),
    )
    return is_same_section or bool(subject_words(quoted.source) & subject_words(other.source))
