"""Errors of the conversations plugin."""

from __future__ import annotations

from kernel.sdk import Conflict, Forbidden, NotFound


class TurnNotFound(NotFound):
    code = "turn_not_found"
    default_detail = "Turn not found"


class ConversationNotFound(NotFound):
    code = "conversation_not_found"
    default_detail = "Conversation not found"


class ConversationPipelineNotFound(NotFound):
    code = "pipeline_not_found"
    default_detail = "Pipeline not found"


class NotFirstWriter(Forbidden):
    code = "not_first_writer"
    default_detail = "Only the person who started this conversation can do that"


class AlreadyShared(Conflict):
    code = "already_shared"
