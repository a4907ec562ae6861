"""Ids as OpenAI's clients see them: a prefix, and the id of our row without its hyphens.

A vector store is a knowledge base, and `file-…` is either a file or, if it was uploaded some other way, a
document. The plain ids are understood as well.
"""

from __future__ import annotations

import uuid
from typing import Final

_FILE: Final = "file-"
_STORE: Final = "vs_"
_BATCH: Final = "vsfb_"
_KEY: Final = "openai_files:"
NOTHING: Final = ""
"""No row has this id."""


def file_name(row_id: str) -> str:
    """The id of a file or document."""
    return _FILE + uuid.UUID(row_id).hex


def store_name(base_id: str) -> str:
    """The id of the vector store that a knowledge base is."""
    return _STORE + uuid.UUID(base_id).hex


def batch_name(row_id: str) -> str:
    """The id of a batch."""
    return _BATCH + uuid.UUID(row_id).hex


def row_in(name: str) -> str:
    """The row's id in any of these ids; `NOTHING` if it is none."""
    for prefix in (_FILE, _STORE, _BATCH):
        name = name.removeprefix(prefix)
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return NOTHING


def key_of(row_id: str) -> str:
    """The key of the documents that are made of a file."""
    return _KEY + row_id


def file_of(key: str | None, document_id: str) -> str:
    """The id under which clients know a document, whose key this is."""
    is_ours = key is not None and key.startswith(_KEY)
    return file_name(key.removeprefix(_KEY) if key is not None and is_ours else document_id)
