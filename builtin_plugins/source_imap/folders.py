"""Which folders of a mailbox are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from builtin_plugins.source_imap.replies import MailFolder
from builtin_plugins.source_imap.settings import ImapSettings
from builtin_plugins.sources.api import SourceMisplaced

_LEFT_OUT: Final = frozenset({"\\drafts", "\\junk", "\\trash", "\\all", "\\flagged", "\\important"})
"""Special folders (RFC 6154): those that nobody looks for documents in, and those of messages elsewhere."""
_CLOSED: Final = frozenset({"\\noselect", "\\nonexistent"})


def selected_folders(folders: Sequence[MailFolder], settings: ImapSettings) -> list[MailFolder]:
    """Those that the settings name, or all that are usual. Raises SourceMisplaced if one is not there."""
    open_ones = [one for one in folders if not one.flags & _CLOSED]
    names = settings.folder_names
    if not names:
        return [one for one in open_ones if not one.flags & _LEFT_OUT]
    missing = names - {one.name for one in open_ones}
    if missing:
        raise SourceMisplaced(f"The mailbox has no folder '{min(missing)}'")
    return [one for one in open_ones if one.name in names]
