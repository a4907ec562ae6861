"""E-mail: short texts to one address, through the operator's mail server."""

from __future__ import annotations

import asyncio
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid, parseaddr

import aiosmtplib

from kernel.sdk import ResourceKey, utc_now
from kernel.sdk.operations import KernelSettings


class MailFailed(Exception):
    """The mail server did not accept an e-mail. The text contains no address and no secret.

    `permanent` means that the server refused this e-mail permanently, so retrying is pointless.
    """

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


class Mail:
    """Sends by SMTP (RFC 5321) with STARTTLS or TLS."""

    def __init__(self, settings: KernelSettings) -> None:
        self._settings = settings

    @property
    def configured(self) -> bool:
        """Whether the operator has configured a mail server."""
        return bool(self._settings.smtp_host)

    async def send(self, to: str, subject: str, text: str) -> None:
        """Pass an e-mail to the mail server. Raises MailFailed, within `PLATFORM_SMTP_TIMEOUT`."""
        try:
            async with asyncio.timeout(self._settings.smtp_timeout):
                await self._deliver(_message(self._settings.mail_from, to, subject, text))
        except TimeoutError:
            raise MailFailed("the mail server did not answer in time") from None
        except aiosmtplib.SMTPRecipientsRefused as error:
            refused = all(item.code >= 500 for item in error.recipients)
            raise MailFailed("the mail server refused the recipient", permanent=refused) from None
        except aiosmtplib.SMTPResponseException as error:
            raise MailFailed(f"the mail server answered {error.code}") from None
        except (aiosmtplib.SMTPException, OSError) as error:
            raise MailFailed(f"the mail server can't be reached: {type(error).__name__}") from None

    async def _deliver(self, message: EmailMessage) -> None:
        settings = self._settings
        password = settings.smtp_password
        await aiosmtplib.send(
            message,
            hostname=settings.smtp_host,
            port=settings.smtp_port,
            username=settings.smtp_user or None,
            password=password.get_secret_value() if password and settings.smtp_user else None,
            timeout=settings.smtp_timeout,
            use_tls=settings.smtp_tls == "tls",
            start_tls=settings.smtp_tls == "starttls",
        )


MAIL: ResourceKey[Mail] = ResourceKey("mail")


def _message(sender: str, to: str, subject: str, text: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = sender
    message["To"] = to
    message["Subject"] = subject
    message["Date"] = format_datetime(utc_now())
    message["Message-ID"] = make_msgid(domain=parseaddr(sender)[1].rpartition("@")[2])
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    return message
