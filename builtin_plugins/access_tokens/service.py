"""Create, list and revoke tokens: plain functions over a session or a unit of work."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, func, or_, select, update
from sqlalchemy.orm import Session

from builtin_plugins.access_tokens.errors import TokenKeyUsed, TokenNotFound, TooManyTokens
from builtin_plugins.access_tokens.models import AccessToken
from builtin_plugins.access_tokens.schemas import (
    AccessTokenCreate,
    AccessTokenCreated,
    AccessTokenOfAccount,
    AccessTokenOut,
    render,
)
from builtin_plugins.access_tokens.secret_text import MakeToken, digest, new_token
from kernel.sdk import Account, Conflict, NotFound, Unauthorized, Unit, audit, shared_moment, utc_now
from kernel.sdk.accounts import Origin

TOPIC = "access_tokens"
MOST = 100  # per account
_NO_ID = 0

_REQUEST_FIELDS = {"name", "scopes", "expires_at"}

# The lock for changes of accounts: no token may be created during a deactivation, which revokes them all.
_ACCOUNTS_LOCK = "accounts"


def create(
    unit: Unit,
    account_id: int,
    body: AccessTokenCreate,
    *,
    epoch: int | None = None,
    origin: Origin | None = None,
    make_token: MakeToken = new_token,
) -> AccessTokenCreated:
    """A new token of an account, whose value is only in this answer.

    With an idempotency key, the one that `make_token` made before, if any. `epoch` is the calling session's,
    None for the operator. Raises NotFound, Unauthorized (the session has ended), Conflict (a deactivated
    account), TooManyTokens, IdempotencyKeyUsed.
    """
    unit.lock(_ACCOUNTS_LOCK)
    _check_account(unit.session, account_id, epoch)
    if body.idempotency_key is not None:
        earlier = _made_before(unit, account_id, body, make_token, origin)
        if earlier is not None:
            return earlier
    _check_number(unit.session, account_id)
    created_at = utc_now()
    token = make_token(created_at)
    row = AccessToken(
        account_id=account_id,
        name=body.name,
        token_hash=digest(token),
        last_four=token[-4:],
        scopes=" ".join(body.scopes),
        created_at=created_at,
        expires_at=body.expires_at,
    )
    unit.session.add(row)
    unit.session.flush()
    _audit(unit, "created", row, origin, after=True)
    # An earlier look-up of this same text may be cached as unknown. Without the id: what already streams to
    # the token in another process goes on.
    unit.notify(TOPIC, _notice_key(_NO_ID, row.token_hash))
    return AccessTokenCreated(**render(row).model_dump(), token=token)


def _check_account(session: Session, account_id: int, epoch: int | None) -> None:
    account = session.execute(
        select(Account.is_active, Account.epoch).where(Account.id == account_id)
    ).one_or_none()
    if account is None:
        raise NotFound("User not found")
    if epoch is not None and (not account.is_active or account.epoch != epoch):
        raise Unauthorized("The session was revoked; sign in again")
    if not account.is_active:
        raise Conflict("The account is deactivated")


def _check_number(session: Session, account_id: int) -> None:
    query = select(func.count()).select_from(AccessToken).where(AccessToken.account_id == account_id)
    if (session.scalar(query) or 0) >= MOST:
        raise TooManyTokens(f"An account has at most {MOST} access tokens; delete some")


def _made_before(
    unit: Unit, account_id: int, body: AccessTokenCreate, make_token: MakeToken, origin: Origin | None
) -> AccessTokenCreated | None:
    """The token made with the same key, unless it has ended. Raises IdempotencyKeyUsed if it differs."""
    for row in unit.session.scalars(select(AccessToken).where(AccessToken.account_id == account_id)):
        token = make_token(row.created_at)
        if digest(token) == row.token_hash:
            record = render(row)
            if record.model_dump(include=_REQUEST_FIELDS) != body.model_dump(include=_REQUEST_FIELDS):
                raise TokenKeyUsed()
            _audit(unit, "repeated", row, origin, after=True)
            return AccessTokenCreated(**record.model_dump(), token=token)
    return None


def list_page(session: Session, account_id: int, limit: int, offset: int) -> tuple[list[AccessTokenOut], int]:
    """The tokens of an account, newest first, and how many there are."""
    mine = AccessToken.account_id == account_id
    rows = session.scalars(
        select(AccessToken).where(mine).order_by(AccessToken.id.desc()).limit(limit).offset(offset)
    )
    items = [render(row) for row in rows]
    return items, session.scalar(select(func.count()).select_from(AccessToken).where(mine)) or 0


def list_all(session: Session, account_id: int | None) -> list[AccessTokenOfAccount]:
    """The tokens of one account, or of all, oldest first: for the operator."""
    query = select(AccessToken).order_by(AccessToken.id)
    if account_id is not None:
        query = query.where(AccessToken.account_id == account_id)
    return [
        AccessTokenOfAccount(**render(row).model_dump(), account_id=row.account_id)
        for row in session.scalars(query)
    ]


def revoke(
    unit: Unit, token_id: int, account_id: int | None = None, origin: Origin | None = None
) -> AccessTokenOut:
    """Revoke a token, in all processes within a moment; the operator may revoke any account's.

    Raises TokenNotFound, also for another account's.
    """
    query = select(AccessToken).where(AccessToken.id == token_id)
    if account_id is not None:
        query = query.where(AccessToken.account_id == account_id)
    row: AccessToken | None = unit.session.scalar(query.with_for_update())
    if row is None:
        raise TokenNotFound()
    record = render(row)
    _audit(unit, "revoked", row, origin)
    unit.notify(TOPIC, _notice_key(row.id, row.token_hash))
    unit.session.delete(row)
    return record


def end_all(session: Session, account_id: int) -> list[AccessToken]:
    """Remove every token of an account; returns those removed, for the audit log and notices."""
    rows = list(session.scalars(select(AccessToken).where(AccessToken.account_id == account_id)))
    session.execute(delete(AccessToken).where(AccessToken.account_id == account_id))
    for row in rows:
        session.expunge(row)
    return rows


def find(session: Session, token_hash: str) -> tuple[int, int, str, float] | None:
    """(id, account, scopes, end by the monotonic clock) of a token; None for an unknown one."""
    row = session.execute(_FIND, {"hash": token_hash}).one_or_none()
    if row is None:
        return None
    ends = math.inf
    if row.expires_at is not None:  # by the clock that all machines share; their own may be wrong
        now = session.scalars(select(shared_moment(session))).one()
        ends = time.monotonic() + (row.expires_at - now).total_seconds()
    return row.id, row.account_id, row.scopes, ends


def write_uses(unit: Unit, uses: Mapping[int, datetime]) -> None:
    """Store when tokens, by id, were last used; an earlier time never replaces a later one."""
    # In the order of their ids, so that two processes that write the same rows can't deadlock.
    values = [{"token": token, "at": at} for token, at in sorted(uses.items())]
    unit.session.connection().execute(_USED, values)


def token_in_notice(key: str) -> tuple[int, str]:
    """(id, hash) of the token that a notice is about; no token has the id when it is a new one."""
    number, _, token_hash = key.partition(":")
    return int(number), token_hash


def _notice_key(token_id: int, token_hash: str) -> str:
    return f"{token_id}:{token_hash}"


def notice_of(row: AccessToken) -> str:
    """The key of the notice about a token."""
    return _notice_key(row.id, row.token_hash)


def _audit(unit: Unit, action: str, row: AccessToken, origin: Origin | None, *, after: bool = False) -> None:
    state = audit_state(row)
    audit(
        unit,
        f"access_token.{action}",
        "access_token",
        row.id,
        before=None if after else state,
        after=state if after else None,
        origin=origin,
    )


def audit_state(row: AccessToken) -> dict[str, Any]:
    """What the audit log records about a token."""
    return {
        "account_id": row.account_id,
        "name": row.name,
        "scopes": row.scopes.split(),
        "expires_at": row.expires_at.isoformat() if row.expires_at else None,
    }


_TOKEN: Any = AccessToken.__table__
_FIND = select(_TOKEN.c.id, _TOKEN.c.account_id, _TOKEN.c.scopes, _TOKEN.c.expires_at).where(
    _TOKEN.c.token_hash == bindparam("hash")
)
_USED = (
    update(_TOKEN)
    .where(
        _TOKEN.c.id == bindparam("token"),
        or_(_TOKEN.c.last_used_at.is_(None), _TOKEN.c.last_used_at < bindparam("at")),
    )
    .values(last_used_at=bindparam("at"))
)
