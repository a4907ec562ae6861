"""Addresses of documents and their passages, for opening citations."""

from __future__ import annotations

import re

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SHAPE = re.compile(
    rf"platform://knowledge-bases/(?P<kb>{_UUID})/documents/(?P<document>{_UUID})(?:/passages/(?P<passage>{_UUID}))?"
)

DOCUMENT_TEMPLATE = "platform://knowledge-bases/{knowledge_base_id}/documents/{document_id}"
PASSAGE_TEMPLATE = f"{DOCUMENT_TEMPLATE}/passages/{{passage_id}}"


def document_uri(kb_id: str, document_id: str) -> str:
    """The address of a document."""
    return f"platform://knowledge-bases/{kb_id}/documents/{document_id}"


def passage_uri(kb_id: str, document_id: str, passage_id: str) -> str:
    """The address of one passage of a document."""
    return f"{document_uri(kb_id, document_id)}/passages/{passage_id}"


def parse(uri: str) -> tuple[str, str, str | None] | None:
    """(knowledge base, document, passage or None) of an address; None for any other text."""
    match = _SHAPE.fullmatch(uri)
    return None if match is None else (match["kb"], match["document"], match["passage"])
