"""A search in files as an item of a response, and the citations of files."""

from __future__ import annotations

from typing import Any

from builtin_plugins.orchestrator.api import FileHits
from builtin_plugins.orchestrator.events import Finished
from builtin_plugins.orchestrator.rendering.citations import citations
from builtin_plugins.orchestrator.schemas_responses import ResponsesBody

Json = dict[str, Any]


def search_done(name: str, hits: FileHits, body: ResponsesBody) -> Json:
    """The item of a search; it lists the passages only if the request includes them."""
    results = [
        {
            "file_id": hit.file_id,
            "filename": hit.filename,
            "score": hit.score,
            "text": hit.text,
            "attributes": dict(hit.attributes),
        }
        for hit in hits.hits
    ]
    return {
        "id": name,
        "type": "file_search_call",
        "status": "completed",
        "queries": list(hits.queries),
        "results": results if body.shows_results else None,
    }


def file_citations(text: str, end: Finished) -> list[Json]:
    """Where the text cites files: `index` is the place behind which it does, in characters."""
    return [
        {
            "type": "file_citation",
            "index": start,
            "file_id": end.files[number - 1].file_id,
            "filename": end.files[number - 1].filename,
        }
        for start, _, number in citations(text, end.passages)
        if number <= len(end.files)
    ]
