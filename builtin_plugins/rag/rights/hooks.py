"""Hooks about who may read documents; other plugins find them in `rag.api`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.sdk import hookspec

if TYPE_CHECKING:
    from sqlalchemy import Select
    from sqlalchemy.orm import Session

    from builtin_plugins.rag.rights.audiences import DocumentReaders
    from kernel.sdk import Caller, Platform, Scope, Unit


@dataclass(frozen=True, slots=True)
class ReaderAccounts:
    """A reader of a document, and the accounts that it currently means."""

    reader: str
    account_ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class DocumentAudience:
    """Who may read a document, of those who see its knowledge base.

    `everybody` means all of them; then there need be no `readers`. `holder` is None for a document without
    readers of its own, and for one whose audience is gone, which nobody may read.
    """

    holder: str | None
    everybody: bool
    readers: Sequence[ReaderAccounts] = ()


@hookspec.first_now
def grant_documents(
    platform: Platform,
    unit: Unit,
    knowledge_base_id: str,
    readers_by_key: Mapping[str, DocumentReaders | None],
) -> int | None:
    """Change who may read documents with plugins' keys: their versions, too, and what came out of them.

    None opens a document to everybody who sees the knowledge base. Nothing is read again, and every search
    and list that begins after the commit goes by it. Returns how many of the keys' documents have changed.
    Raises ValueError for readers whose names don't begin with the holder's and a colon.
    """


@hookspec.first_now
def set_reader_members(
    platform: Platform, unit: Unit, holder: str, members: Mapping[str, Sequence[int]]
) -> int | None:
    """Say which accounts each of these readers of a holder stands for, in place of those before.

    Readers that are not named keep theirs; an empty sequence leaves one without any. Returns how many of them
    have changed. Raises ValueError for readers whose names don't begin with the holder's and a colon.
    """


@hookspec.first_now
def drop_audiences(platform: Platform, unit: Unit, holder: str) -> int | None:
    """Remove a holder's audiences with their readers and members; returns how many audiences there were.

    Documents that still have one can be read by nobody, until `grant_documents` gives them others.
    """


@hookspec.first_now
def count_unreadable_documents(
    platform: Platform, session: Session, knowledge_base_id: str, holder: str
) -> int | None:
    """How many present documents no account may read: their readers, of this holder, have no members."""


@hookspec.first
def list_document_readers(
    caller: Caller, knowledge_base_id: str, document_id: str
) -> DocumentAudience | None:
    """Who may read a document that the caller may read. Raises NotFound."""


@hookspec.first_now
def select_readable_documents(platform: Platform, scope: Scope) -> Select[str] | None:
    """A query for the ids of the documents that a scope may read, in all versions; for use as a subquery."""
