"""Setup codes: how an install without a Platform Admin gets one once its bootstrap is over (spec 3.6).

That is an upgraded install with administrators, or one whose first Platform Admin no longer is one. The first
grant by the operator, or the first claim, closes setup codes for good.

The operator issues a code on the server; an administrator claims it once signed in. Wrong codes are counted
in the database, so that neither a restart nor guessing in parallel gives more attempts.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.guards import ACCOUNTS_LOCK
from builtin_plugins.accounts.platform_admins import (
    CODES_CLOSED,
    AlreadyPlatformAdmin,
    PlatformAdmins,
    reached,
)
from kernel.sdk import (
    Account,
    Conflict,
    Database,
    Forbidden,
    NotFound,
    PlatformError,
    ResourceKey,
    Unit,
    audit,
)
from kernel.sdk.accounts import Origin, SetupAttempt, SetupCode

# Crockford's base 32: no letter looks like a digit. Three groups have 90 bits.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUPS, GROUP = 3, 6
WRONG_CODES = 5
LIFETIME = timedelta(hours=24)


class NoSetupCode(NotFound):
    code = "no_setup_code"
    default_detail = "No setup code is in use on this server"


class ClaimRefused(Forbidden):
    code = "claim_refused"
    default_detail = "The setup code was refused"


class NotAdministrator(ClaimRefused):
    code = "not_administrator"
    default_detail = "Only an active instance administrator can use a setup code"


class NoActiveCode(ClaimRefused):
    code = "no_active_code"
    default_detail = "There is no valid setup code; the operator can issue one"


class ExpiredCode(ClaimRefused):
    code = "expired_code"
    default_detail = "The setup code has expired; the operator can issue a new one"


class WrongCode(ClaimRefused):
    code = "wrong_code"
    default_detail = "The setup code is wrong"


class TooManyWrongCodes(ClaimRefused):
    code = "too_many_wrong_codes"
    default_detail = "Too many wrong codes were entered; the operator can issue a new setup code"


class SetupCodesClosed(Conflict):
    code = "setup_codes_closed"
    default_detail = "Setup codes are not in use on this server"


class SetupCodes:
    """Issues and redeems setup codes."""

    def __init__(self, database: Database, admins: PlatformAdmins) -> None:
        self._database = database
        self._admins = admins

    async def issue(self, origin: Origin | None = None) -> tuple[str, datetime]:
        """A new code and its expiry; invalidates earlier ones. Raises SetupCodesClosed."""
        code = "-".join("".join(secrets.choice(_ALPHABET) for _ in range(GROUP)) for _ in range(GROUPS))
        return code, await self._database.write(_issue, code, origin)

    async def is_in_use(self) -> bool:
        """Whether anybody can still become Platform Admin with a setup code."""
        return await self._database.read(_in_use)

    async def claim(self, account_id: int, code: str, origin: Origin) -> None:
        """Make the account the first Platform Admin. Raises the errors of spec section 7; audits refusals.

        Of two accounts that claim at once, one wins: the code is consumed in the transaction of the grant.
        """
        refusal = await self._database.write(self._claim, account_id, code, origin)
        if refusal is not None:
            raise refusal

    def _claim(self, unit: Unit, account_id: int, code: str, origin: Origin) -> PlatformError | None:
        """Claim. A refusal is returned, not raised, so that its count and audit entry are committed."""
        unit.lock(ACCOUNTS_LOCK)
        refusal = self._redeem(unit, account_id, code, origin)
        if refusal is not None:
            reason = {"reason": refusal.code}
            audit(unit, "platform_admin.claim_refused", "account", account_id, after=reason, origin=origin)
        return refusal

    def _redeem(self, unit: Unit, account_id: int, code: str, origin: Origin) -> PlatformError | None:
        account = unit.session.get(Account, account_id, populate_existing=True)
        if account is None or not account.is_active:
            return NotAdministrator()
        if account.platform_admin:
            return AlreadyPlatformAdmin()
        if account.role != "admin":
            return NotAdministrator()
        if not _in_use(unit.session):
            return NoSetupCode()
        current = unit.session.scalar(select(SetupCode).order_by(SetupCode.id.desc()).limit(1))
        refusal = _judge(unit, current, account, code)
        if refusal is None and current is not None:
            current.consumed_at = unit.now()
            self._admins.set_flag(unit, account, origin, "setup code")
        return refusal


SETUP_CODES: ResourceKey[SetupCodes] = ResourceKey("setup_codes")


def _issue(unit: Unit, code: str, origin: Origin | None) -> datetime:
    unit.lock(ACCOUNTS_LOCK)
    if not reached(unit.session):
        raise SetupCodesClosed(
            "This is a new installation: the first administrator to sign in becomes Platform Admin"
        )
    if not _in_use(unit.session):
        raise SetupCodesClosed(
            "This server has, or once had, a Platform Admin, so it issues no setup codes; "
            "use 'platform-admin grant'"
        )
    row = SetupCode(code_hash=_hash(code), expires_at=unit.now() + LIFETIME)
    unit.session.add(row)
    unit.session.flush()
    after = {"expires_at": row.expires_at.isoformat()}
    audit(unit, "platform_admin.code_issued", "setup_code", row.id, after=after, origin=origin)
    return row.expires_at


def _judge(unit: Unit, current: SetupCode | None, account: Account, code: str) -> PlatformError | None:
    """Compare a code with the newest one; count a wrong one. Returns the refusal, if any."""
    if current is None or current.consumed_at is not None:
        return NoActiveCode()
    if current.expires_at <= unit.now():
        return ExpiredCode()
    attempts = unit.session.get(SetupAttempt, (current.id, account.id), populate_existing=True)
    if attempts is not None and attempts.wrong >= WRONG_CODES:
        return TooManyWrongCodes()
    if hmac.compare_digest(current.code_hash, _hash(code)):
        return None
    if attempts is None:
        attempts = SetupAttempt(code_id=current.id, account_id=account.id, wrong=0)
        unit.session.add(attempts)
    attempts.wrong += 1
    return WrongCode()


def _in_use(session: Session) -> bool:
    if not reached(session) or reached(session, CODES_CLOSED):
        return False
    return session.scalar(select(Account.id).where(Account.platform_admin).limit(1)) is None


def plain(code: str) -> str:
    """A code in its comparable form: in capitals, without dashes and spaces."""
    return "".join(code.replace("-", "").split()).upper()


def _hash(code: str) -> str:
    return hashlib.sha256(plain(code).encode()).hexdigest()
