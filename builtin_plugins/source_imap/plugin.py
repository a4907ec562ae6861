"""The plugin for mailboxes."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.source_imap.mailbox import IMAP
from builtin_plugins.sources.api import SourceKind
from kernel.sdk import Plugin, hookimpl


class SourceImapPlugin(Plugin):
    """Brings the kind `imap`."""

    name = "source_imap"
    version = "0.1.0"
    description = "Mailboxes on IMAP servers as sources of knowledge bases"
    author = "Platform"
    requires = ("sources",)

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [IMAP]
