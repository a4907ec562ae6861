"""Citations in a text as annotations in OpenAI's shape (``url_citation``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from builtin_plugins.rag import api as rag


_CITED = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")


def citations(text: str, passages: Sequence[rag.Passage]) -> list[tuple[int, int, int]]:
    """(start, end, number) of each citation in the text that names one of the passages."""
    return [
        (citation.start(), citation.end(), int(number))
        for citation in _CITED.finditer(text)
        for number in citation[1].split(",")
        if 1 <= int(number) <= len(passages)
    ]


def url_citations(text: str, passages: Sequence[rag.Passage]) -> list[dict[str, Any]]:
    """The citations of a text for chat completions; the address is a path of this gateway."""
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": start,
                "end_index": end,
                "title": passages[number - 1].source,
                "url": address(passages[number - 1]),
            },
        }
        for start, end, number in citations(text, passages)
    ]


def address(passage: rag.Passage) -> str:
    """Where the document of a passage can be fetched; the fragment tells its passages apart."""
    if passage.knowledge_base_id is None:
        return ""
    place = f"/v1/rag/knowledge-bases/{passage.knowledge_base_id}/documents/{passage.document_id}/content"
    page = "" if passage.page is None else f"page={passage.page}&"
    return f"{place}#{page}passage={passage.chunk_id}"


def source_event(passages: Sequence[rag.Passage]) -> dict[str, Any]:
    """All passages as Open WebUI's event: it takes ``[n]`` for the n-th source of a message.

    `source` in the metadata is the annotations' address, or it would count cited passages twice.
    """
    metadata = [_metadata(one) for one in passages]
    texts = [one.text for one in passages]
    return {
        "type": "source",
        "data": {"source": {"name": "Platform"}, "document": texts, "metadata": metadata},
    }


def _metadata(passage: rag.Passage) -> dict[str, Any]:
    """Open WebUI counts pages from 0."""
    page = {} if passage.page is None else {"page": passage.page - 1}
    return {"source": address(passage) or passage.chunk_id, "name": passage.source, **page}
