"""Versions of a document: an upload under its identity replaces it; what was replaced is kept for a while.

A version is a row of its own. The new one answers from the commit that completes it; in the same commit the
earlier ones become `superseded`: their passages leave the search, their text and file stay.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api
from builtin_plugins.rag.errors import DocumentExists, VersionMismatch
from builtin_plugins.rag.events import DocumentDeleted
from builtin_plugins.rag.models import SUPERSEDED, Document, KnowledgeBase
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Job, NoPayload, Platform, Unit, Unprocessable, utc_now

OnConflict = Literal["keep", "replace", "fail"]

LONGEST_PATH: Final = 500
LONGEST_ID: Final = 255
_PATH: Final = "path:"
_ID: Final = "id:"
_MOST_NAMES: Final = 20
_FORGOTTEN_AT_ONCE: Final = 50
_CURRENT: Final[ColumnElement[bool]] = Document.status != SUPERSEDED


@dataclass(frozen=True)
class Placing:
    """What an upload replaces. `if_match` holds digests (SHA-256 in hex) of which the present version must
    have one, or ``*`` for any; `if_new` refuses if there is one.
    """

    identity: str | None = None
    on_conflict: OnConflict = "keep"
    if_match: Collection[str] | None = None
    if_new: bool = False


def identity_of(path: str | None, external_id: str | None) -> str | None:
    """The identity that an uploader gives a document: a path, or an id of its own; None without either.

    Raises Unprocessable for both, and for an unusable one.
    """
    if path and external_id:
        raise Unprocessable.field(
            ("body", "external_id"), "send either a path or an external_id", external_id
        )
    if path:
        return _PATH + _fitting("path", path.strip().strip("/"), LONGEST_PATH)
    if external_id:
        return _ID + _fitting("external_id", external_id.strip(), LONGEST_ID)
    return None


def _fitting(field: str, sent: str, longest: int) -> str:
    text = unicodedata.normalize("NFC", sent)
    if not text or len(text) > longest:
        raise Unprocessable.field(("body", field), f"must have 1 to {longest} characters", sent[:40])
    if any(unicodedata.category(one) in ("Cc", "Cs") for one in text):
        raise Unprocessable.field(("body", field), "must not contain control characters", ascii(sent[:40]))
    return text


def path_in(identity: str | None) -> str | None:
    """The path of an identity; None if it is none."""
    return None if identity is None or not identity.startswith(_PATH) else identity.removeprefix(_PATH)


def external_id_in(identity: str | None) -> str | None:
    """The uploader's own id; None if the identity is none."""
    return None if identity is None or not identity.startswith(_ID) else identity.removeprefix(_ID)


def inside(identity: str | None, name: str) -> str | None:
    """The identity of a file inside a document with this identity, by the file's path there."""
    longest = LONGEST_PATH if path_in(identity) is not None else LONGEST_ID
    made = f"{identity}!/{unicodedata.normalize('NFC', name)}"
    return made if identity is not None and len(made) <= longest else None


def latest(session: Session, base_id: str, identity: str) -> Document | None:
    """The newest version under an identity, completed or not."""
    mine = (Document.knowledge_base_id == base_id) & (Document.identity == identity)
    newest = select(Document).where(mine).order_by(Document.version.desc()).limit(1)
    found: Document | None = session.scalar(newest)
    return found


def replaced_by(session: Session, document: Document) -> Document | None:
    """The completed version that a document's version will replace."""
    if document.identity is None:
        return None
    mine = (Document.knowledge_base_id == document.knowledge_base_id) & (
        Document.identity == document.identity
    )
    earlier = mine & (Document.version < document.version) & (Document.status == "completed")
    found: Document | None = session.scalar(
        select(Document).where(earlier).order_by(Document.version.desc()).limit(1)
    )
    return found


def present(session: Session, base_id: str, identity: str) -> Document | None:
    """The same, unless a newer one has replaced it, as one whose restoring failed."""
    found = latest(session, base_id, identity)
    return None if found is None or found.status == SUPERSEDED else found


def settle_identity(
    session: Session, base_id: str, filename: str, sha256: str, placing: Placing
) -> str | None:
    """The identity under which an upload goes; the knowledge base must be locked.

    A document without an identity that is replaced by its name gets its name for one. Raises DocumentExists
    and VersionMismatch.
    """
    if placing.identity is not None:
        _check_present(present(session, base_id, placing.identity), placing)
        return placing.identity
    if placing.on_conflict == "keep":
        return None
    others = [one for one in _of_name(session, base_id, filename) if one.sha256 != sha256]
    if others and (placing.on_conflict == "fail" or len(others) > 1):
        instead = ", or on_conflict=replace to replace it" if len(others) == 1 else ""
        ids = [one.id for one in others[:_MOST_NAMES]]
        message = (
            f"{_some(len(others))} called '{filename}' here; send on_conflict=keep to add one more{instead}"
        )
        raise DocumentExists({"message": message, "document_ids": ids})
    if not others:
        return None
    replaced = others[0]
    if replaced.identity is None:
        replaced.identity = f"{_PATH}{filename}"
        session.flush()
    return replaced.identity


def _some(count: int) -> str:
    return "a document is" if count == 1 else f"{count} documents are"


def _check_present(document: Document | None, placing: Placing) -> None:
    if placing.if_new and document is not None:
        raise VersionMismatch("There is a document with this path already")
    if placing.if_match is None:
        return
    if document is None:
        raise VersionMismatch("There is no document with this path to replace")
    if "*" not in placing.if_match and document.sha256 not in placing.if_match:
        raise VersionMismatch(f"The document has changed: it is version {document.version} by now")


def same_name(session: Session, document: Document) -> list[str]:
    """The ids of the other documents of the same file name in the knowledge base, at most 20."""
    others = _of_name(session, document.knowledge_base_id, document.filename)
    return [one.id for one in others if one.id != document.id][:_MOST_NAMES]


def _of_name(session: Session, base_id: str, filename: str) -> Sequence[Document]:
    """The documents of a file name, the newest version of each; not those that came out of others."""
    named = (Document.knowledge_base_id == base_id) & (Document.filename == filename)
    query = select(Document).where(named, _CURRENT, Document.parent_id.is_(None))
    rows = session.scalars(query.order_by(Document.version.desc(), Document.id).limit(_MOST_NAMES * 2)).all()
    newest = {row.identity or row.id: row for row in reversed(rows)}
    return list(newest.values())


def all_versions(session: Session, document: Document) -> Sequence[Document]:
    """A document's versions, newest first; of a document without identity, itself."""
    if document.identity is None:
        return [document]
    return session.scalars(
        select(Document)
        .where(Document.knowledge_base_id == document.knowledge_base_id)
        .where(Document.identity == document.identity)
        .order_by(Document.version.desc())
    ).all()


def replace_earlier(unit: Unit, platform: Platform, base: KnowledgeBase, document: Document) -> None:
    """Let a version that is completed in this unit take the place of the earlier ones.

    From newer to older, so that two that end at the same time never wait for each other.
    """
    if document.identity is None or document.version == 1:
        return
    unit.session.flush()
    mine = (Document.knowledge_base_id == base.id) & (Document.identity == document.identity)
    older = select(Document).where(mine, _CURRENT, Document.version < document.version)
    locked = older.order_by(Document.version.desc()).with_for_update()
    for row in unit.session.scalars(locked.execution_options(populate_existing=True)).all():
        _supersede(unit, platform, base, row)
        _supersede_members(unit, platform, base, row)
    most = platform.settings_of(RagSettings).document_versions
    surplus = select(Document).where(mine, Document.status == SUPERSEDED)
    surplus = surplus.order_by(Document.version.desc()).offset(most)
    for row in unit.session.scalars(surplus.with_for_update()).all():
        _forget(unit, platform, row)


def _supersede(unit: Unit, platform: Platform, base: KnowledgeBase, row: Document) -> None:
    vectors = platform.resource(VECTORS)
    vectors.retire(unit, base.collection, row.id, base.earlier_collection)
    # Read again: the embedding model may have begun to change since.
    change = select(KnowledgeBase.reembedding).where(KnowledgeBase.id == base.id)
    coming = KnowledgeBase(id=base.id, reembedding=unit.session.scalar(change)).coming_collection
    for collection in filter(None, (coming, base.tree_collection)):
        vectors.remove_group(unit, collection, row.id)
    if row.status != "completed":
        row.chunk_count = 0
    row.tree_wanted, row.tree_nodes, row.tree_levels, row.tree_built_at = False, 0, 0, None
    row.status, row.superseded_at = SUPERSEDED, utc_now()
    unit.session.flush()
    platform.hooks.ask_now(
        api.withdraw_derived, platform=platform, unit=unit, knowledge_base_id=base.id, document_id=row.id
    )


def _supersede_members(unit: Unit, platform: Platform, base: KnowledgeBase, row: Document) -> None:
    """The files inside that the new version does not have; those that it has are its own by now."""
    of = (Document.knowledge_base_id == base.id) & (Document.parent_id == row.id)
    left = select(Document).where(
        of, _CURRENT, Document.identity.startswith(f"{row.identity}!/", autoescape=True)
    )
    for member in unit.session.scalars(left.order_by(Document.id).with_for_update()).all():
        newest = latest(unit.session, base.id, member.identity or "")
        if newest is None or newest.id == member.id:
            _supersede(unit, platform, base, member)
            _supersede_members(unit, platform, base, member)


def _forget(unit: Unit, platform: Platform, row: Document) -> None:
    """Remove a replaced version that is kept no longer, with all that refers to it."""
    base_id = row.knowledge_base_id
    base = unit.session.get(KnowledgeBase, base_id)
    collection = KnowledgeBase(id=base_id).earlier_collection
    platform.resource(VECTORS).remove_group(unit, collection, row.id)
    platform.blobs.release(unit, row.sha256, row.holder)
    platform.hooks.ask_now(
        api.remove_derived, platform=platform, unit=unit, knowledge_base_id=base_id, document_id=row.id
    )
    owner_id = None if base is None else base.owner_id
    unit.emit(DocumentDeleted(document_id=row.id, knowledge_base_id=base_id, owner_id=owner_id))
    unit.session.delete(row)


async def forget_old(platform: Platform, _payload: NoPayload) -> None:
    """Once a day: remove the replaced versions that are older than `document_version_days`."""
    days = platform.settings_of(RagSettings).document_version_days
    while days and await platform.database.write(_forget_some, platform, days) == _FORGOTTEN_AT_ONCE:
        pass
    await platform.database.scrub()


def _forget_some(unit: Unit, platform: Platform, days: int) -> int:
    old = Document.superseded_at < unit.now() - timedelta(days=days)
    some = select(Document).where(Document.superseded_at.is_not(None), old).order_by(Document.superseded_at)
    rows = unit.session.scalars(some.limit(_FORGOTTEN_AT_ONCE).with_for_update(skip_locked=True)).all()
    for row in rows:
        _forget(unit, platform, row)
    return len(rows)


FORGET_OLD = Job("rag.forget_versions", NoPayload, forget_old, schedule="40 3 * * *")
