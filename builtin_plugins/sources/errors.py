"""Errors of the routes."""

from __future__ import annotations

from kernel.sdk import Conflict, Forbidden, NotFound, Unavailable


class SourceNotFound(NotFound):
    code = "source_not_found"
    default_detail = "Source not found"


class SourcedBaseNotFound(NotFound):
    code = "knowledge_base_not_found"
    default_detail = "Knowledge base not found"


class OriginNotFound(NotFound):
    code = "origin_not_found"
    default_detail = "The document does not come from a source"


class PushNotFound(NotFound):
    code = "push_not_found"
    default_detail = "No source has this address; make a new one on the source's page"


class NotSourceOwner(Forbidden):
    code = "not_owner"
    default_detail = "Only the owner of the knowledge base may see and change its sources"


class NothingToConfirm(Conflict):
    code = "nothing_to_confirm"
    default_detail = "No run of this source waits for a confirmation"


class SourceLeaving(Conflict):
    code = "source_being_removed"
    default_detail = "The source is being removed"


class TooManySources(Conflict):
    code = "too_many_sources"


class KindUnavailable(Unavailable):
    code = "source_kind_unavailable"


class DocumentsUnavailable(Unavailable):
    code = "knowledge_bases_unavailable"
    default_detail = "No active plugin provides knowledge bases; ask the operator to enable rag"
