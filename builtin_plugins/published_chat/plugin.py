"""Published chat: lets visitors of other sites' pages ask a pipeline."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from builtin_plugins.accounts.api import OwnedRows, compare_reads
from builtin_plugins.conversations import api as conversations
from builtin_plugins.published_chat.handlers import endpoints, public
from builtin_plugins.published_chat.models import Base, ChatEndpoint
from builtin_plugins.published_chat.permissions import PUBLISH
from builtin_plugins.published_chat.services import feedback
from builtin_plugins.published_chat.services.endpoints import remove_of_account
from builtin_plugins.published_chat.services.retention import TIDY
from builtin_plugins.published_chat.services.visitor_access import THRESHOLD, open_threshold
from builtin_plugins.published_chat.settings import PublishedChatSettings
from builtin_plugins.published_chat.tokens import SECRET, VISITOR_TOKENS, open_visitor_tokens
from builtin_plugins.published_chat.widget import WIDGET, open_widget
from kernel.sdk import (
    Caller,
    Diagnostic,
    Finding,
    JobRef,
    Permission,
    Platform,
    Plugin,
    Resource,
    RouteTable,
    Tables,
    hookimpl,
)


class PublishedChatPlugin(Plugin):
    """Chats of owners on other sites' pages, and the widget that shows them."""

    name = "published_chat"
    version = "0.1.0"
    description = "Chats for the visitors of other sites, answered from pipelines"
    author = "Platform"
    requires = ("accounts", "inference", "rag", "conversations")

    @hookimpl(optionalhook=True)
    def describe_secrets(self) -> Mapping[str, str]:
        return {SECRET: "visitors will lose their sessions with published chats at the next start"}

    @hookimpl
    def register_settings(self) -> type[PublishedChatSettings]:
        return PublishedChatSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return [PUBLISH]

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return [Diagnostic("reads", _find_leaks)]

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [endpoints.routes, public.routes]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [TIDY]

    @hookimpl(optionalhook=True)
    async def list_rated_turns(
        self, caller: Caller, pipeline_ids: Sequence[str], limit: int
    ) -> Sequence[conversations.RecordedTurn]:
        return await feedback.rated(caller, pipeline_ids, limit)

    @hookimpl(optionalhook=True)
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        await remove_of_account(platform, account_id)

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [
            Resource(VISITOR_TOKENS, open_visitor_tokens),
            Resource(THRESHOLD, open_threshold),
            Resource(WIDGET, open_widget),
        ]


def _find_leaks(platform: Platform) -> AsyncIterator[Finding]:
    return compare_reads(platform, "published chats", partial(OwnedRows, table=ChatEndpoint))
