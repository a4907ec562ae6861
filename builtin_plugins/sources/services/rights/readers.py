"""Who may read an item at its source, as it is stored and as the knowledge base takes it."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final, Literal, TypeAlias

from builtin_plugins.rag import api as rag
from builtin_plugins.sources.models import SourceRecord
from builtin_plugins.sources.protocol import SourceGrant
from builtin_plugins.sources.services.texts import digest_of

PrincipalKind: TypeAlias = Literal["person", "group"]
Principal: TypeAlias = tuple[PrincipalKind, str]
"""A person or a group, and the id there."""

EVERYONE: Final = -1
"""In place of a number of accounts: everybody who sees the knowledge base."""


def holder_of(source_id: str) -> str:
    """The holder of the audiences of a source."""
    return f"sources:{source_id}"


def reader_of(source_id: str, kind: str, digest: str) -> str:
    """The name of a reader: a person or group by the digest of the id."""
    return f"{holder_of(source_id)}:{kind}:{digest}"


def pack(grant: SourceGrant | None) -> str:
    """A grant as it is stored; None is one for nobody."""
    grant = grant or SourceGrant()
    return json.dumps(
        {
            "everybody": grant.everybody,
            "groups": sorted(set(grant.groups)),
            "people": sorted(set(grant.people)),
        }
    )


def unpack(packed: str | None) -> SourceGrant:
    """The stored grant; one for nobody if it isn't known."""
    if packed is None:
        return SourceGrant()
    stored = json.loads(packed)
    return SourceGrant(stored["people"], stored["groups"], stored["everybody"])


def principals_in(grant: SourceGrant) -> list[Principal]:
    """The people and groups that a grant names."""
    return [("person", one) for one in grant.people] + [("group", one) for one in grant.groups]


def document_readers(
    source: SourceRecord, packed: str | None, everyone: Collection[tuple[str, str]]
) -> rag.DocumentReaders:
    """Who may read an item's document. `everyone`: kind and digest of those who are everybody here."""
    grant = unpack(packed)
    named = [(kind, digest_of(one)) for kind, one in principals_in(grant)]
    is_open = grant.everybody or any(one in everyone for one in named)
    readers = sorted(reader_of(source.id, kind, digest) for kind, digest in named)
    return rag.DocumentReaders(holder_of(source.id), readers, everybody=is_open)
