"""Receipts of deletions: what was removed from where, signed with their own key (HMAC, RFC 2104).

A receipt is made in the deleting unit and kept in the audit log. It contains no file name and no text.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api
from builtin_plugins.rag.models import Document, KnowledgeBase, reading_collection
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.schemas_receipts import (
    MOST_LISTED,
    Receipt,
    ReceiptFacts,
    RemovedContent,
    RemovedFrom,
)
from builtin_plugins.rag.services.metadata import count_values
from builtin_plugins.vectors.api import indexes_built_before
from kernel.sdk import Caller, Platform, ResourceKey, Scope, SecretStore, Unit, audit, utc_now

KEY = "deletion-receipts"
INDEX_FILES = "index_files"
WITHOUT_KEY = "deletion receipts issued so far can no longer be verified"


class Signer:
    """Signs receipts, and verifies its own signatures."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self.key_id = hashlib.sha256(b"key id:" + self._key).hexdigest()[:16]

    def sign(self, facts: ReceiptFacts) -> Receipt:
        """The receipt of these facts."""
        data = facts.model_dump(mode="json") | {"key_id": self.key_id}
        return Receipt.model_validate({**data, "signature": self._signature(data)})

    def signed(self, receipt: Receipt) -> bool:
        """Whether this key signed this very receipt."""
        data = receipt.model_dump(mode="json", exclude={"signature"})
        return hmac.compare_digest(self._signature(data), receipt.signature)

    def _signature(self, facts: dict[str, object]) -> str:
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


SIGNER: ResourceKey[Signer] = ResourceKey("signer of receipts")


@asynccontextmanager
async def open_signer(platform: Platform) -> AsyncIterator[Signer]:
    """The signer of this platform; all its processes share the key."""
    yield Signer(await asyncio.to_thread(platform.secrets.ensure, KEY))


def known_signer(secrets: SecretStore) -> Signer | None:
    """The signer of earlier receipts; None if its key is gone. Never makes a new key."""
    key = secrets.get(KEY)
    return Signer(key) if key else None


def of_document(
    unit: Unit, caller: Caller, signer: Signer, rows: Sequence[Document], own: Sequence[api.RemovedPart]
) -> Receipt:
    """The receipt of a document that is being deleted, then its other versions; `own` is what RAG removed."""
    document = rows[0]
    content = [
        RemovedContent(document_id=row.id, sha256=row.sha256, size_bytes=row.size_bytes)
        for row in rows[:MOST_LISTED]
    ]
    base = document.knowledge_base_id
    facts = _facts(caller, base, document.id, document.sha256, len(rows), content)
    return _close(unit, caller, signer, facts, own)


def of_base(unit: Unit, caller: Caller, signer: Signer, base: KnowledgeBase, scope: Scope) -> Receipt:
    """The receipt of a knowledge base that is being deleted; a job removes its documents. It lists those that
    the scope may read.
    """
    total, chunks, summaries = _extent(unit.session, base.id)
    values = count_values(unit.session, base.id, None)
    of = Document.knowledge_base_id == base.id
    digests = unit.session.scalars(select(Document.sha256).where(of).order_by(Document.sha256))
    digest = hashlib.sha256("".join(f"{one}\n" for one in digests).encode()).hexdigest()
    columns = (Document.id, Document.sha256, Document.size_bytes)
    listed = unit.session.execute(
        select(*columns).where(of, readable(scope)).order_by(Document.sha256).limit(MOST_LISTED)
    )
    content = [
        RemovedContent(document_id=row.id, sha256=row.sha256, size_bytes=row.size_bytes) for row in listed
    ]
    own = [
        api.RemovedPart("knowledge_bases", 1),
        api.RemovedPart("rows", total, pending=total > 0),
        api.RemovedPart("vectors", chunks),
        api.RemovedPart("texts", chunks),
        api.RemovedPart("tree_nodes", summaries),
        api.RemovedPart("files", total, pending=total > 0),
        api.RemovedPart("metadata", values, pending=values > 0),
    ]
    return _close(unit, caller, signer, _facts(caller, base.id, None, digest, total, content), own)


def _extent(session: Session, base_id: str) -> tuple[int, ...]:
    """Documents, passages and summaries of a knowledge base."""
    sums = (func.sum(Document.chunk_count), func.sum(Document.tree_nodes))
    query = select(func.count(), *sums).where(Document.knowledge_base_id == base_id)
    return tuple(int(value or 0) for value in session.execute(query).one())


def _facts(
    caller: Caller,
    base: str,
    document: str | None,
    digest: str,
    total: int,
    content: list[RemovedContent],
) -> ReceiptFacts:
    return ReceiptFacts(
        receipt_id=str(uuid.uuid4()),
        kind="knowledge_base" if document is None else "document",
        knowledge_base_id=base,
        document_id=document,
        digest=digest,
        document_count=total,
        documents=content,
        removed=[],
        deleted_at=utc_now(),
        deleted_by=caller.principal.subject,
    )


def _close(
    unit: Unit, caller: Caller, signer: Signer, facts: ReceiptFacts, own: Sequence[api.RemovedPart]
) -> Receipt:
    """Let plugins remove their part, sign, and keep the receipt in the audit log."""
    parts = [*own, *_files_of_words(unit, caller.platform, facts)]
    parts += _parts_of_plugins(unit, caller.platform, facts)
    removed = [RemovedFrom(place=one.place, count=one.count, pending=one.pending) for one in parts]
    receipt = signer.sign(facts.model_copy(update={"removed": removed}))
    audit(
        unit,
        f"rag.{facts.kind}.receipt",
        facts.kind,
        facts.document_id or facts.knowledge_base_id,
        after={"receipt": receipt.model_dump(mode="json")},
        origin=caller.origin,
    )
    return receipt


def words_in_files(session: Session, platform: Platform, receipt: ReceiptFacts) -> int:
    """How many saved search indexes on this machine may still have what was deleted."""
    base = receipt.knowledge_base_id
    row = session.get(KnowledgeBase, base)
    coming = None if row is None else row.coming_collection
    collections = [f"rag:{base}", f"rag-tree:{base}", reading_collection(base), *([coming] if coming else [])]
    return indexes_built_before(platform, session, collections, receipt.deleted_at)


def _files_of_words(unit: Unit, platform: Platform, facts: ReceiptFacts) -> list[api.RemovedPart]:
    """The indexes that are built again without the words; none of a small knowledge base."""
    left = words_in_files(unit.session, platform, facts)
    return [api.RemovedPart(INDEX_FILES, left, pending=True)] if left else []


def _parts_of_plugins(unit: Unit, platform: Platform, facts: ReceiptFacts) -> list[api.RemovedPart]:
    """Of a document, those of all its versions together."""
    ids = [None] if facts.document_id is None else [one.document_id for one in facts.documents]
    parts: dict[str, api.RemovedPart] = {}
    for document_id in ids:
        answers = platform.hooks.ask_now(
            api.remove_derived,
            platform=platform,
            unit=unit,
            knowledge_base_id=facts.knowledge_base_id,
            document_id=document_id,
        )
        for part in (part for some in answers for part in some):
            earlier = parts.get(part.place, api.RemovedPart(part.place, 0))
            pending = part.pending or earlier.pending
            parts[part.place] = api.RemovedPart(part.place, earlier.count + part.count, pending=pending)
    return list(parts.values())
