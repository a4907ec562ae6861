"""Accounts: register, sign in, refresh, change the password. Knows no HTTP."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from builtin_plugins.accounts import hookspecs
from builtin_plugins.accounts.errors import (
    AccountDisabled,
    AlreadyExists,
    BadCredentials,
    FirstAccountExists,
    SamePassword,
    SessionOver,
    SsoAccount,
    WrongPassword,
)
from builtin_plugins.accounts.guards import ACCOUNTS_LOCK
from builtin_plugins.accounts.listeners import tell_plugins
from builtin_plugins.accounts.password_resets import forget_resets
from builtin_plugins.accounts.passwords import Passwords
from builtin_plugins.accounts.platform_admins import PlatformAdmins
from builtin_plugins.accounts.schemas import AccountChange
from builtin_plugins.accounts.verified_addresses import note_verified
from kernel.sdk import Account, Principal, ResourceKey, Unauthorized, Unit, audit
from kernel.sdk.accounts import (
    ACCOUNT_TOPIC,
    AccountState,
    AccountStates,
    Origin,
    Tokens,
    account_id,
    revoke_sessions,
)
from kernel.sdk.http import RateLimits

if TYPE_CHECKING:
    from kernel.sdk import Platform

_REFRESHES = 10


class Accounts:
    """The logic behind `/v1/auth`."""

    def __init__(
        self,
        platform: Platform,
        *,
        passwords: Passwords,
        tokens: Tokens,
        states: AccountStates,
        admins: PlatformAdmins,
        limits: RateLimits,
    ) -> None:
        self._platform = platform
        self._settings = platform.settings
        self._database = platform.database
        self._some = False
        self._passwords = passwords
        self._tokens = tokens
        self._states = states
        self._admins = admins
        self._limits = limits

    async def register(
        self,
        username: str,
        email: str,
        password: str,
        *,
        role: str = "user",
        origin: Origin | None = None,
        anonymous: bool = False,
    ) -> Account:
        """Create an active account. Raises AlreadyExists, which names the field that is taken.

        With `anonymous`, the caller is not signed in, and TooManySignIns may be raised; otherwise, the
        operator vouches for the address.
        """
        password_hash = await self._passwords.hash(password, anonymous=anonymous)
        try:
            account, vouched = _new(username, email, password_hash, role), not anonymous
            return await self._database.write(self._create, account, origin, vouched=vouched)
        except IntegrityError:
            raise AlreadyExists("A user with this username or email already exists") from None

    async def register_first(
        self, username: str, email: str, password: str, origin: Origin | None = None
    ) -> Account:
        """Create the first administrator. Raises FirstAccountExists, AlreadyExists, TooManySignIns."""
        password_hash = await self._passwords.hash(password, anonymous=True)
        account = _new(username, email, password_hash, "admin")
        return await self._database.write(self._create_first, account, origin)

    def _create_first(self, unit: Unit, account: Account, origin: Origin | None) -> Account:
        unit.lock(ACCOUNTS_LOCK)
        if _is_administered(unit.session):
            raise FirstAccountExists()
        return self._create(unit, account, origin, vouched=True)

    def _create(
        self,
        unit: Unit,
        account: Account,
        origin: Origin | None,
        *,
        vouched: bool,
    ) -> Account:
        _refuse_taken(unit.session, account.username, account.email)
        unit.session.add(account)
        unit.session.flush()
        if vouched:
            note_verified(unit, account, "operator")
        after = {"username": account.username, "role": account.role}
        audit(unit, "account.created", "account", account.id, after=after, origin=origin)
        tell_plugins(self._platform, unit, account, "created", origin)
        unit.notify(ACCOUNT_TOPIC, str(account.id))
        return account

    async def refuse_taken(self, username: str, email: str) -> None:
        """Raise AlreadyExists, naming the field, if another account has the name or the address."""
        await self._database.read(_refuse_taken, username, email)

    async def sign_in(
        self, username: str, password: str, origin: Origin | None = None
    ) -> tuple[Account, str]:
        """The account and a token. Raises BadCredentials, or AccountDisabled when the password was right."""
        account = await self._find(username)
        stored = account.password_hash if account else None
        right = await self._passwords.verify(stored, password, anonymous=True)
        if not right or account is None:
            raise BadCredentials()
        if not account.is_active:
            raise AccountDisabled()
        return account, await self._mint(account, "signed_in", origin=origin)

    async def open_session(self, account: Account, origin: Origin | None = None) -> str:
        """A token for an account that has just been verified other than by its password."""
        return await self._mint(account, "signed_in", origin=origin)

    async def _find(self, username: str) -> Account | None:
        key = username.casefold()
        query = select(Account).where((Account.username_key == key) | (Account.email_key == key)).limit(2)
        rows = await self._database.read(lambda session: session.scalars(query).all())
        return next((row for row in rows if row.username_key == key), rows[0] if rows else None)

    async def refresh(self, claims: dict[str, Any]) -> str:
        """A fresh token for a signature-checked, perhaps expired one (spec 5.3). Raises Unauthorized."""
        subject = account_id(claims)
        if claims.get("role") == "service" or subject is None:
            raise Unauthorized("This token can't be refreshed")
        self._check_age(claims)
        _check_session(await self._states.get(subject), claims)
        # After the checks, so that a dead token can't use up the account's refreshes; before the hooks.
        await self._limits.count(f"refresh:{subject}", _REFRESHES)
        account = await self._database.read(lambda session: session.get(Account, subject))
        _check_session(account, claims)
        assert account is not None
        return await self._mint(account, "refreshed", claims)

    def _check_age(self, claims: dict[str, Any]) -> None:
        grace = self._settings.jwt_refresh_grace_minutes * 60
        if time.time() > claims["exp"] + grace:
            raise SessionOver("The token expired too long ago; sign in again")
        self._check_cap(claims)

    def _check_cap(self, claims: Mapping[str, Any]) -> None:
        """Refuse a new token if the session, counted from its sign-in, is older than the limit."""
        cap = self._settings.jwt_session_max_hours * 3600
        if cap and time.time() > claims.get("auth_time", claims["iat"]) + cap:
            raise SessionOver()

    async def change_password(
        self, account_id: int, current: str, new: str, claims: Mapping[str, Any], origin: Origin
    ) -> str:
        """Replace the password, end all sessions, return a token that continues that of `claims`."""
        self._check_cap(claims)
        account = await self._database.read(lambda session: session.get_one(Account, account_id))
        _check_session(account, claims)
        if account.password_hash is None:
            raise SsoAccount()
        if not await self._passwords.verify(account.password_hash, current):
            raise WrongPassword()
        if current == new:
            raise SamePassword()
        password_hash = await self._passwords.hash(new)
        changed = await self._database.write(_replace_password, account, password_hash, origin)
        return await self._mint(changed, "refreshed", claims)

    async def end_sessions(self, account_id: int, origin: Origin) -> None:
        """Refuse every token of the account that was issued until now."""
        await self._database.write(_end_sessions, account_id, origin)

    async def reissue(self, principal: Principal, claims: Mapping[str, Any]) -> str:
        """A token that continues the caller's session, asking for further `claims` (`token_claims`)."""
        self._check_cap(principal.claims)
        account = await self._database.read(lambda session: session.get_one(Account, principal.id))
        if not account.is_active or account.epoch != principal.claims.get("epoch", 0):
            raise Unauthorized("The session was revoked; sign in again")
        return await self._mint(account, "refreshed", {**principal.claims, **claims})

    async def _mint(
        self,
        account: Account,
        change: AccountChange,
        old: Mapping[str, Any] | None = None,
        origin: Origin | None = None,
    ) -> str:
        claims: dict[str, Any] = {}
        first = change == "signed_in" and await self._admins.may_be_first(account)
        if first or self._has_listeners():
            claims = await self._database.write(self._open, account, change, old, origin, first)
        auth_time = old.get("auth_time", old["iat"]) if old else None
        return self._tokens.mint(account, claims, auth_time=auth_time)

    def _open(
        self,
        unit: Unit,
        account: Account,
        change: AccountChange,
        old: Mapping[str, Any] | None,
        origin: Origin | None,
        first: bool,
    ) -> dict[str, Any]:
        """Notify plugins and return their claims. `first`: it may become the first Platform Admin."""
        if first:
            self._admins.bootstrap(unit, account, origin)
        tell_plugins(self._platform, unit, account, change, origin)
        answers = self._platform.hooks.ask_now(
            hookspecs.token_claims, platform=self._platform, unit=unit, account=account, previous=old
        )
        return {name: value for claims in answers for name, value in claims.items()}

    def _has_listeners(self) -> bool:
        """Whether a plugin wants to be notified of sessions, or to add to their tokens."""
        implementations = self._platform.hooks.implementations
        return bool(implementations(hookspecs.token_claims) or implementations(hookspecs.on_account_event))

    async def any(self) -> bool:
        """Whether there is any account. True is remembered: every sign-in page asks."""
        self._some = self._some or await self._database.read(_any)
        return self._some

    async def is_administered(self) -> bool:
        """Whether anybody is an administrator."""
        return await self._database.read(_is_administered)

    async def list(self, limit: int = 500, offset: int = 0) -> tuple[list[Account], int]:
        """Accounts in the order of their ids, and the total number."""
        return await self._database.read(_page, limit, offset)


def _check_session(account: Account | AccountState | None, claims: Mapping[str, Any]) -> None:
    if account is None or not account.is_active:
        raise Unauthorized("The account is disabled or was deleted")
    if claims.get("epoch", 0) != account.epoch:
        raise Unauthorized("The session was revoked; sign in again")


def _any(session: Session) -> bool:
    return session.scalar(select(Account.id).limit(1)) is not None


def _is_administered(session: Session) -> bool:
    mine = (Account.role == "admin") & Account.deleted_at.is_(None)
    return session.scalar(select(Account.id).where(mine).limit(1)) is not None


def _page(session: Session, limit: int, offset: int) -> tuple[list[Account], int]:
    there = Account.deleted_at.is_(None)
    rows = session.scalars(select(Account).where(there).order_by(Account.id).limit(limit).offset(offset))
    return list(rows), session.scalar(select(func.count()).select_from(Account).where(there)) or 0


def _replace_password(unit: Unit, account: Account, password_hash: str, origin: Origin) -> Account:
    """The account as changed here; if another revocation follows, its epoch is dead."""
    change = (
        update(Account)
        .where(Account.id == account.id, Account.password_hash == account.password_hash)
        .where(Account.is_active, Account.epoch == account.epoch)
        .values(password_hash=password_hash, must_change_password=False, epoch=Account.epoch + 1)
        .returning(Account)
    )
    changed: Account | None = unit.session.scalar(change)
    if changed is None:
        raise Unauthorized("The session was revoked; sign in again")
    forget_resets(unit, account.id)
    audit(unit, "account.password_changed", "account", account.id, origin=origin)
    unit.notify(ACCOUNT_TOPIC, str(account.id))
    return changed


def _end_sessions(unit: Unit, account_id: int, origin: Origin) -> None:
    revoke_sessions(unit, account_id)
    audit(unit, "account.signed_out", "account", account_id, origin=origin)


def _new(username: str, email: str, password_hash: str, role: str) -> Account:
    return Account(
        username=username,
        username_key=username.casefold(),
        email=email,
        email_key=email.casefold(),
        password_hash=password_hash,
        role=role,
    )


def _refuse_taken(session: Session, username: str, email: str) -> None:
    query = select(Account.id).limit(1)
    if session.scalar(query.where(Account.username_key == username.casefold())):
        raise AlreadyExists("A user with this username already exists")
    if session.scalar(query.where(Account.email_key == email.casefold())):
        raise AlreadyExists("A user with this email already exists")


ACCOUNTS: ResourceKey[Accounts] = ResourceKey("accounts")
