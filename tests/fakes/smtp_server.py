"""A mail server on a real socket that keeps what it is given, and refuses when told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope


@dataclass
class Mailbox:
    """What was delivered, by the server on `port`. While `refusal` is set, recipients hear it."""

    port: int = 0
    letters: list[EmailMessage] = field(default_factory=list)
    refusal: str = ""
    tries: int = 0
    tried: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def env(self) -> dict[str, str]:
        """The settings of a platform that sends through this server."""
        return {
            "PLATFORM_SMTP_HOST": "127.0.0.1",
            "PLATFORM_SMTP_PORT": str(self.port),
            "PLATFORM_SMTP_TLS": "none",
            "PLATFORM_MAIL_FROM": "Platform <platform@example.org>",
        }

    async def handle_RCPT(
        self, _server: Any, _session: Any, envelope: Envelope, address: str, _o: Any
    ) -> str:
        """Whether a recipient is taken."""
        self.tries += 1
        self.tried.set()
        if self.refusal:
            return self.refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:
        """Keep a letter."""
        letter = message_from_bytes(envelope.content or b"", policy=policy.default)  # type: ignore[arg-type]
        self.letters.append(letter)  # type: ignore[arg-type]
        return "250 OK"


@asynccontextmanager
async def smtp_server() -> AsyncIterator[Mailbox]:
    """Serve on a free port of this machine."""
    mailbox = Mailbox()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(mailbox, enable_SMTPUTF8=True, loop=loop), "127.0.0.1", 0)
    mailbox.port = server.sockets[0].getsockname()[1]
    try:
        yield mailbox
    finally:
        server.close()
        await server.wait_closed()
