"""What identifies a document for its uploader, and what an upload replaces."""

from __future__ import annotations

import hashlib
import string
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import ColumnElement, func, literal_column, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import DocumentExists, VersionMismatch
from builtin_plugins.rag.metadata.changes import raise_version
from builtin_plugins.rag.models import SUPERSEDED, Document
from builtin_plugins.rag.rights.reading import readable
from kernel.sdk import Scope, Unprocessable

OnConflict = Literal["keep", "replace", "fail"]

LONGEST_PATH: Final = 500
LONGEST_ID: Final = 255
_PATH: Final = "path:"
_ID: Final = "id:"
_PLUGIN: Final = "plugin:"
"""Of documents that a plugin keeps in step with something: no upload replaces them, or takes them over."""
_LONGEST_KEY: Final = 200
_INSIDE: Final = "in:"
"""Of files inside documents whose paths are too long, or that had no identity until they were replaced."""
_MOST_NAMES: Final = 20
CURRENT: Final[ColumnElement[bool]] = Document.status != SUPERSEDED
"""Versions that no other has replaced."""


@dataclass(frozen=True)
class Replacement:
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
        return identity_at(path)
    if external_id:
        return _ID + _fitting("external_id", external_id.strip(), LONGEST_ID)
    return None


def identity_at(path: str) -> str:
    """The identity of the document with a path. Raises Unprocessable for one that no address reaches."""
    fitting = _fitting("path", path.strip(f"/{string.whitespace}"), LONGEST_PATH)
    if any(part in ("", ".", "..") for part in fitting.split("/")):
        raise Unprocessable.field(
            ("body", "path"), "must not have empty parts, '.' or '..' between its slashes", path[:40]
        )
    return _PATH + fitting


def identity_for(key: str) -> str:
    """The identity of a document that a plugin keeps under its own key. Raises ValueError for a long one."""
    if not 0 < len(key) <= _LONGEST_KEY:
        raise ValueError(f"the key of a plugin's document must have 1 to {_LONGEST_KEY} characters")
    return _PLUGIN + key


def is_of_plugin(identity: str | None) -> bool:
    """Whether a plugin keeps the document with this identity, or the one that it came out of."""
    return identity is not None and identity.startswith(_PLUGIN)


def key_in(identity: str | None) -> str | None:
    """The key under which a plugin keeps the document; None if none does."""
    return identity.removeprefix(_PLUGIN) if identity is not None and is_of_plugin(identity) else None


def plugin_in(identity: str | None) -> str | None:
    """The plugin that keeps the document; None if it is none."""
    key = key_in(identity)
    return None if key is None else key.partition(":")[0]


NOT_OF_PLUGIN: Final[ColumnElement[bool]] = Document.identity.is_(None) | (
    func.substr(Document.identity, literal_column("1"), literal_column(str(len(_PLUGIN))))
    != literal_column(f"'{_PLUGIN}'")
)


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
    if identity is None:
        return None
    longest = LONGEST_PATH if path_in(identity) is not None else LONGEST_ID
    inner = f"{identity}!/{unicodedata.normalize('NFC', name)}"
    return inner if len(inner) <= longest else _INSIDE + hashlib.sha256(inner.encode()).hexdigest()


def members_of(document: Document) -> ColumnElement[bool]:
    """The versions that came out of a document and that nobody has placed elsewhere."""
    own = Document.identity.startswith(f"{document.identity}!/", autoescape=True)
    placed_here = own | Document.identity.is_(None) | Document.identity.startswith(_INSIDE)
    # Without the knowledge base, for which SQLite would read all of its documents.
    return (Document.parent_id == document.id) & placed_here


def name_unnamed(member: Document) -> None:
    """Give a file from inside a document an identity of its own, if it has none."""
    member.identity = member.identity or _INSIDE + member.id


def latest(session: Session, base_id: str, identity: str) -> Document | None:
    """The newest version under an identity, completed or not."""
    mine = (Document.knowledge_base_id == base_id) & (Document.identity == identity)
    newest = select(Document).where(mine).order_by(Document.version.desc()).limit(1)
    document: Document | None = session.scalar(newest)
    return document


def replaced_by(session: Session, document: Document) -> Document | None:
    """The completed version that a document's version will replace."""
    if document.identity is None:
        return None
    mine = (Document.knowledge_base_id == document.knowledge_base_id) & (
        Document.identity == document.identity
    )
    earlier = mine & (Document.version < document.version) & (Document.status == "completed")
    predecessor: Document | None = session.scalar(
        select(Document).where(earlier).order_by(Document.version.desc()).limit(1)
    )
    return predecessor


def present(session: Session, base_id: str, identity: str) -> Document | None:
    """The same, unless a newer one has replaced it, as one whose restoring failed."""
    newest = latest(session, base_id, identity)
    return None if newest is None or newest.status == SUPERSEDED else newest


def settle_identity(
    session: Session, scope: Scope, base_id: str, filename: str, sha256: str, placing: Replacement
) -> str | None:
    """The identity under which an upload goes; the knowledge base must be locked.

    Documents of the name that the uploader may not read count as none.

    A document without an identity that is replaced by its name gets its name for one. Raises DocumentExists
    and VersionMismatch.
    """
    if placing.identity is not None:
        _check_present(present(session, base_id, placing.identity), placing)
        return placing.identity
    if placing.on_conflict == "keep":
        return None
    others = [one for one in _of_name(session, scope, base_id, filename) if one.sha256 != sha256]
    if placing.on_conflict == "replace":
        others = [one for one in others if not is_of_plugin(one.identity)]
    if others and (placing.on_conflict == "fail" or len(others) > 1):
        instead = ", or on_conflict=replace to replace it" if len(others) == 1 else ""
        ids = [one.id for one in others[:_MOST_NAMES]]
        message = (
            f"{_some(len(others))} called '{filename}' here; send on_conflict=keep to add one more{instead}"
        )
        raise DocumentExists({"message": message, "document_ids": ids})
    if not others:
        return None
    return others[0].identity or _name(session, others[0])


def _name(session: Session, document: Document) -> str:
    identity = f"{_PATH}{document.filename}"
    other = latest(session, document.knowledge_base_id, identity)
    if other is not None:
        message = (
            f"another document has the path '{document.filename}'; send a path that says which to replace"
        )
        raise DocumentExists({"message": message, "document_ids": [document.id, other.id]})
    document.identity = identity
    session.flush()
    raise_version(session, document.knowledge_base_id)
    return identity


def _some(count: int) -> str:
    return "a document is" if count == 1 else f"{count} documents are"


def _check_present(document: Document | None, placing: Replacement) -> None:
    if placing.if_new and document is not None:
        raise VersionMismatch("There is a document with this path already")
    if placing.if_match is None:
        return
    if document is None:
        raise VersionMismatch("There is no document with this path to replace")
    if "*" not in placing.if_match and document.sha256 not in placing.if_match:
        raise VersionMismatch(f"The document has changed: it is version {document.version} by now")


def same_name(session: Session, scope: Scope, document: Document) -> list[str]:
    """The ids of the other documents of the same file name in the knowledge base that the scope may read, at
    most 20.
    """
    others = _of_name(session, scope, document.knowledge_base_id, document.filename)
    return [one.id for one in others if one.id != document.id][:_MOST_NAMES]


def _of_name(session: Session, scope: Scope, base_id: str, filename: str) -> Sequence[Document]:
    """The documents of a file name, the newest version of each; not those that came out of others."""
    named = (Document.knowledge_base_id == base_id) & (Document.filename == filename) & readable(scope)
    query = select(Document).where(named, CURRENT, Document.parent_id.is_(None))
    rows = session.scalars(query.order_by(Document.version.desc(), Document.id).limit(_MOST_NAMES * 2)).all()
    newest = {row.identity or row.id: row for row in reversed(rows)}
    return list(newest.values())
