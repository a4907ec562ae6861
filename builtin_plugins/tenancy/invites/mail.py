"""E-mails with invites, sent once the invites are committed.

They are sent by the request itself and not by a durable job, which would store the token; the database only
has its hash. The price: a failed e-mail is not retried; the inviter sees that, and has the token.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import update

from builtin_plugins.accounts.api import MAIL, MailFailed
from builtin_plugins.tenancy.invites.offers import OfferTarget
from builtin_plugins.tenancy.invites.records import PENDING, status_of
from builtin_plugins.tenancy.invites.schemas import MANAGING
from builtin_plugins.tenancy.models import Invite
from builtin_plugins.tenancy.settings import TenancySettings
from kernel.sdk import RATE_LIMITS, Platform, Unit, utc_now

log = logging.getLogger("platform.tenancy")

_AT_ONCE = 8
_CONSENT = (
    f"{MANAGING} An account that you create for this invitation will be managed by the organization. "
    "An account that you have already will be only if you agree to it when you accept.\n\n"
)
_BODY = ' (with the body {"accept_management": true} to let the organization manage an existing account)'
_PER_ADDRESS, _WINDOW = 5, 600


@dataclass
class Issued:
    """An invite with its token. `email_sent` is None where no e-mail is configured.

    One that is not `new` was made when the same request was sent earlier.
    """

    invite: Invite
    token: str
    new: bool = True
    link: str | None = None
    how_to_accept: str = ""
    email_sent: bool | None = None


async def deliver(platform: Platform, sender: str, target: OfferTarget, issued: Iterable[Issued]) -> None:
    """Add the links, and send each new invite; `email_sent` is False if that fails or takes too long."""
    letters = list(issued)
    for letter in letters:
        letter.link = _link(platform, letter.token)
        letter.how_to_accept = _how_to_accept(letter)
        letter.email_sent = letter.invite.email_sent if platform.resource(MAIL).configured else None
    new = [letter for letter in letters if letter.new]
    if platform.resource(MAIL).configured and new:
        await _send_all(platform, sender, target, new)


async def _send_all(platform: Platform, sender: str, target: OfferTarget, letters: Sequence[Issued]) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)
    with suppress(TimeoutError):
        async with (
            asyncio.timeout(platform.settings_of(TenancySettings).invite_mail_seconds),
            asyncio.TaskGroup() as group,
        ):
            for letter in letters:
                group.create_task(_send(platform, sender, target, letter, slots))
    if sent := [letter.invite.id for letter in letters if letter.email_sent]:
        await platform.database.write(_note_sent, sent)


def _note_sent(unit: Unit, ids: Sequence[int]) -> None:
    unit.session.execute(update(Invite).where(Invite.id.in_(ids)).values(email_sent=True))


async def _send(
    platform: Platform, sender: str, target: OfferTarget, letter: Issued, slots: asyncio.Semaphore
) -> None:
    invite = letter.invite
    address = hashlib.sha256(invite.email_key.encode()).hexdigest()
    if await platform.resource(RATE_LIMITS).exceeds(f"invite-mail:{address}", _PER_ADDRESS, _WINDOW):
        log.warning("an invite was not sent: its address has just received %d e-mails", _PER_ADDRESS)
        return
    where = f"{_what(invite)} {' '.join(target.name.split())}"
    async with slots:
        try:
            await platform.resource(MAIL).send(
                invite.email, f"Invitation to the {where}", _text(sender, where, letter)
            )
        except MailFailed as error:
            log.warning("the e-mail with invite %d was not sent: %s", invite.id, error)
        else:
            letter.email_sent = True


def _link(platform: Platform, token: str) -> str | None:
    """The token is in the fragment, which browsers don't send, so it is in no server's log."""
    base = platform.settings.client_url
    return f"{base}/invites#token={token}" if base else None


def _how_to_accept(letter: Issued) -> str:
    """What the inviter passes on if no e-mail is sent, or that an earlier invite is no longer valid."""
    if (status := status_of(letter.invite, utc_now())) != PENDING:
        return f"This invite is {status}. To send another one, use another idempotency_key."
    if letter.link is not None:
        return "Send the link to the invited person, who opens it and signs in or registers."
    body = "" if letter.invite.team_id is not None else _BODY
    return (
        "Send the token to the invited person, who registers or signs in and redeems it"
        f"{body}: POST /v1/invites/by-token/{letter.token}/redeem"
    )


def _what(invite: Invite) -> str:
    return "team" if invite.team_id is not None else "organization"


def _text(sender: str, where: str, letter: Issued) -> str:
    role = letter.invite.role.replace("_", " ")
    if letter.link is not None:
        way = f"Open this link to accept:\n\n{letter.link}"
    else:
        way = f"Sign in and accept with this token:\n\n{letter.token}"
    consent = "" if letter.invite.team_id is not None else _CONSENT
    until = letter.invite.expires_at.strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"Hello,\n\n{sender} invites you to join the {where} as {role}. {way}\n\n{consent}"
        f"The invite works until {until}. Register or sign in first. "
        "If you did not expect this e-mail, ignore it.\n"
    )
