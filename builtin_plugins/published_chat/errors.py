"""Errors of the published chat."""

from __future__ import annotations

from kernel.sdk import Conflict, Forbidden, NotFound, TooManyRequests, Unauthorized, Unavailable


class EndpointNotFound(NotFound):
    code = "endpoint_not_found"
    default_detail = "Endpoint not found"


class ChatPipelineNotFound(NotFound):
    code = "pipeline_not_found"
    default_detail = "Pipeline not found"


class NotPipelineOwner(Forbidden):
    code = "not_pipeline_owner"
    default_detail = "Only the owner of a pipeline can publish it"


class PublishingNotAllowed(Forbidden):
    code = "publishing_not_allowed"
    default_detail = (
        "The pipeline answers from knowledge bases of others; publishing them needs their owners' permission "
        "(`publishing: allowed` of the knowledge base)"
    )


class PublishedBaseNotFound(NotFound):
    code = "knowledge_base_not_found"
    default_detail = "Knowledge base not found"


class NotBaseOwner(Forbidden):
    code = "not_owner"
    default_detail = "Only the owner of the knowledge base may do this"


class NotEndpointOwner(Forbidden):
    code = "not_owner"
    default_detail = "Only the owner may change this"


class ChatSlugTaken(Conflict):
    code = "slug_taken"
    default_detail = "Another endpoint has this slug; choose another one"


class SessionNotFound(NotFound):
    code = "session_not_found"
    default_detail = "Session not found"


class VisitorTurnNotFound(NotFound):
    code = "turn_not_found"
    default_detail = "This session has no such answer"


class ChatNotFound(NotFound):
    code = "chat_not_found"
    default_detail = "There is no chat at this address"


class ChatClosed(Unavailable):
    code = "chat_closed"
    default_detail = "This chat is currently closed"


class OriginRefused(Forbidden):
    code = "origin_refused"
    default_detail = "This chat is not enabled for this site; its owner can add the site's origin"


class VisitorTokenInvalid(Unauthorized):
    code = "visitor_token_invalid"
    default_detail = "The chat session is missing, has expired or belongs to another page; start a new one"


class DailyLimit(TooManyRequests):
    code = "daily_limit"
    default_detail = "This chat has reached its limit of questions for today; come back tomorrow"
