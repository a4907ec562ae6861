"""Password resets by e-mail: a token that works once, sent by a job, stored only as a hash."""

from __future__ import annotations

import hashlib
import logging
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.errors import BadResetToken
from builtin_plugins.accounts.guards import is_sso
from builtin_plugins.accounts.listeners import tell_plugins
from builtin_plugins.accounts.mail import Mail, MailFailed
from builtin_plugins.accounts.passwords import Passwords
from builtin_plugins.accounts.verified_addresses import note_verified
from kernel.sdk import Account, Job, JobFailed, ResourceKey, Unit, audit, shared_moment
from kernel.sdk.accounts import Origin, PasswordReset, revoke_sessions
from kernel.sdk.http import RateLimits

if TYPE_CHECKING:
    from kernel.sdk import Platform

log = logging.getLogger("platform.auth")

_PER_ADDRESS, _WINDOW = 3, 600
_SUBJECT = "Your new password"


class Forgotten(BaseModel):
    """A request for a new password for the account with this address, if there is one."""

    email: str
    too_often: bool = False


class PasswordResets:
    """Requests, tokens and their redemption.

    Nothing that a client sees or measures depends on whether an account exists: a request looks nothing up,
    but enqueues a job with the address, which a worker runs later.
    """

    def __init__(self, platform: Platform, *, mail: Mail, passwords: Passwords, limits: RateLimits) -> None:
        self._platform = platform
        self._mail = mail
        self._settings = platform.settings
        self._database = platform.database
        self._passwords = passwords
        self._limits = limits

    async def request(self, email: str) -> None:
        """Have an e-mail sent if the address has an account; at most a few per address."""
        address = hashlib.sha256(email.casefold().encode()).hexdigest()
        too_often = await self._limits.exceeds(f"password-reset:{address}", _PER_ADDRESS, _WINDOW)
        # A request beyond the limit is enqueued all the same, so that it takes the same time.
        await self._database.write(_enqueue, Forgotten(email=email, too_often=too_often))

    async def send(self, payload: Forgotten) -> None:
        """Make a token and send it. A repeated run sends a new token, which invalidates earlier ones."""
        if payload.too_often:
            return
        token = secrets.token_urlsafe(32)
        life = timedelta(minutes=self._settings.password_reset_minutes)
        account = await self._database.write(_issue, payload.email, token, life)
        if account is None:
            return
        try:
            await self._mail.send(account.email, _SUBJECT, self._text(account.username, token))
        except MailFailed as error:
            if error.permanent:
                raise JobFailed(str(error)) from None
            raise

    def _text(self, username: str, token: str) -> str:
        settings = self._settings
        if settings.client_url:
            way = f"Open this link to choose one:\n\n{settings.client_url}/reset-password#token={token}"
        else:
            way = f"Use this token to choose one:\n\n{token}"
        return (
            f"Hello {username},\n\nsomebody, probably you, asked for a new password. {way}\n\n"
            f"It works once, within {settings.password_reset_minutes} minutes. If it was not you, do nothing:"
            " your password stays as it is.\n"
        )

    async def confirm(self, token: str, new_password: str, origin: Origin) -> None:
        """Set a new password and end all sessions. Raises BadResetToken."""
        await self._database.read(_refuse_dead, token)
        password_hash = await self._passwords.hash(new_password, anonymous=True)
        await self._database.write(self._confirm, token, password_hash, origin)

    def _confirm(self, unit: Unit, token: str, password_hash: str, origin: Origin) -> None:
        account = _redeem(unit, token)
        account.password_hash = password_hash
        account.must_change_password = False
        unit.session.flush()
        forget_resets(unit, account.id)
        revoke_sessions(unit, account.id)
        note_verified(unit, account, "mail")
        tell_plugins(self._platform, unit, account, "password_reset", origin)
        audit(unit, "account.password_reset", "account", account.id, after={"mode": "email"}, origin=origin)


PASSWORD_RESETS: ResourceKey[PasswordResets] = ResourceKey("password_resets")


def forget_resets(unit: Unit, account_id: int) -> None:
    """Invalidate all earlier tokens, because the password was changed."""
    unit.session.execute(delete(PasswordReset).where(PasswordReset.account_id == account_id))


def _enqueue(unit: Unit, payload: Forgotten) -> None:
    unit.enqueue(SEND_RESET, payload)


def _issue(unit: Unit, email: str, token: str, life: timedelta) -> Account | None:
    """Store a token's hash for the account with this address, if it may have one."""
    query = select(Account).where(Account.email_key == email.casefold()).with_for_update()
    account: Account | None = unit.session.scalar(query)
    if account is None or not _may_reset(account):
        return None
    forget_resets(unit, account.id)
    row = PasswordReset(token_hash=_hash(token), account_id=account.id, expires_at=unit.now() + life)
    unit.session.add(row)
    return account


def _refuse_dead(session: Session, token: str) -> None:
    """Check the token before the costly hash. Raises BadResetToken."""
    lives = PasswordReset.expires_at > shared_moment(session)
    query = select(PasswordReset.account_id).where(PasswordReset.token_hash == _hash(token), lives)
    if session.scalar(query) is None:
        raise BadResetToken()


def _redeem(unit: Unit, token: str) -> Account:
    """The token's account; the token is removed, so that only one of several requests succeeds.

    The account is locked first, as in every change of an account; another order could deadlock.
    """
    of_token = PasswordReset.token_hash == _hash(token)
    owner = select(PasswordReset.account_id).where(of_token).scalar_subquery()
    account: Account | None = unit.session.scalar(
        select(Account).where(Account.id == owner).with_for_update()
    )
    removal = delete(PasswordReset).where(of_token, PasswordReset.expires_at > unit.now())
    if unit.session.scalar(removal.returning(PasswordReset.account_id)) is None:
        raise BadResetToken()
    if account is None or not _may_reset(account):
        raise BadResetToken()
    return account


def _may_reset(account: Account) -> bool:
    return account.is_active and not is_sso(account)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


async def _send(platform: Platform, payload: Forgotten) -> None:
    await platform.resource(PASSWORD_RESETS).send(payload)


async def _given_up(_platform: Platform, _payload: Forgotten, reason: str) -> None:
    log.error("an e-mail with a password reset could not be sent: %s", reason)


SEND_RESET = Job(
    "kernel.send_password_reset", Forgotten, _send, _given_up, retries=12, first_pause=2, lane="quick"
)
