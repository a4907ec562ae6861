"""Permission keys of the published chat."""

from __future__ import annotations

from kernel.sdk import Permission

PUBLISH = Permission("published_chat.publish", "Publish chats that answer from pipelines.", granted_to="user")
