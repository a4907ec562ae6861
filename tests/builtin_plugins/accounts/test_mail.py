"""E-mail goes out whole and protected, or says within its time why not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr

from builtin_plugins.accounts.mail import Mail, MailFailed
from kernel.errors import StartupError
from kernel.settings.loading import KernelSettings, SettingsLoader
from kernel.testing import Start
from tests.fakes.processes import free_port
from tests.fakes.smtp_server import Mailbox, smtp_server


@pytest_asyncio.fixture
async def mailbox() -> AsyncIterator[Mailbox]:
    async with smtp_server() as box:
        yield box


def mail(env: dict[str, str]) -> Mail:
    return Mail(SettingsLoader(env).load("kernel", KernelSettings))


async def test_a_letter(mailbox: Mailbox) -> None:
    """It arrives with its text as written, in any script, and says that a program wrote it."""
    await mail(mailbox.env).send("ana@example.org", "Zażółć", "gęślą jaźń\n")
    letter = mailbox.letters[0]
    assert (letter["To"], letter["Subject"]) == ("ana@example.org", "Zażółć")
    assert letter.get_content().splitlines() == ["gęślą jaźń"]
    assert (letter["Auto-Submitted"], letter["Message-ID"][-13:]) == ("auto-generated", "@example.org>")
    assert letter["Date"].datetime.tzinfo is not None


def test_off() -> None:
    assert mail({}).configured is False


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({"PLATFORM_SMTP_HOST": "mail"}, "PLATFORM_MAIL_FROM"),
        ({"PLATFORM_SMTP_HOST": "mail", "PLATFORM_MAIL_FROM": "nobody"}, "PLATFORM_MAIL_FROM"),
        ({"PLATFORM_SMTP_TLS": "maybe"}, "PLATFORM_SMTP_TLS"),
        ({"PLATFORM_CLIENT_URL": "client.example.org"}, "PLATFORM_CLIENT_URL"),
        ({"PLATFORM_CLIENT_URL": "javascript:alert(1)"}, "PLATFORM_CLIENT_URL"),
    ],
)
async def test_wrong_settings(start_platform: Start, env: dict[str, str], named: str) -> None:
    """A half or wrong setting stops the start and is named."""
    with pytest.raises(StartupError, match=named):
        await start_platform(env=env)


@pytest.mark.parametrize("mode", ["starttls", "tls"])
async def test_never_unprotected(mailbox: Mailbox, mode: str) -> None:
    """A server that does not offer the protection asked for gets no letter."""
    with pytest.raises(MailFailed):
        await mail({**mailbox.env, "PLATFORM_SMTP_TLS": mode}).send("ana@example.org", "s", "t")
    assert mailbox.letters == []


async def test_nobody_listens() -> None:
    env = {"PLATFORM_SMTP_HOST": "127.0.0.1", "PLATFORM_SMTP_PORT": str(free_port())}
    with pytest.raises(MailFailed) as failure:
        await mail({**env, "PLATFORM_MAIL_FROM": "a@b.org"}).send("ana@example.org", "s", "t")
    assert failure.value.permanent is False


async def test_a_silent_server() -> None:
    """A server that takes the connection and says nothing is given up in time."""
    going = asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await going.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = str(server.sockets[0].getsockname()[1])
    env = {"PLATFORM_SMTP_HOST": "127.0.0.1", "PLATFORM_SMTP_PORT": port, "PLATFORM_SMTP_TIMEOUT": "0.2"}
    with pytest.raises(MailFailed):
        async with asyncio.timeout(10):
            await mail({**env, "PLATFORM_MAIL_FROM": "a@b.org"}).send("ana@example.org", "s", "t")
    going.set()
    server.close()


@pytest.mark.parametrize(("answer", "permanent"), [("451 later", False), ("550 never", True)])
async def test_refused(mailbox: Mailbox, answer: str, permanent: bool) -> None:
    """A refusal says whether it is for good, and names nobody."""
    mailbox.refusal = answer
    with pytest.raises(MailFailed) as failure:
        await mail(mailbox.env).send("ana@example.org", "s", "t")
    assert failure.value.permanent is permanent
    assert "ana" not in str(failure.value)


def test_the_password_is_a_secret(tmp_path: Path) -> None:
    settings = SettingsLoader({"PLATFORM_SMTP_PASSWORD": "hunter22"}).load("kernel", KernelSettings)
    assert isinstance(settings.smtp_password, SecretStr)
    assert "hunter22" not in repr(settings)
