"""Storing, reading and deleting the secrets of an owner, within a unit of work."""

from __future__ import annotations

import logging
import re
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import SecretStr
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from builtin_plugins.owner_secrets.keys import NAME, Key, KeyRing, SealBroken
from kernel.sdk import Database, Platform, PlatformError, ResourceKey, Unit, audit, utc_now
from kernel.sdk.accounts import Origin, OwnerSecret
from kernel.sdk.storage import installation_lock

log = logging.getLogger("platform.secrets")

OwnerKind: TypeAlias = Literal["account", "organization", "plugin"]

_NAME: Final = re.compile(r"[a-z][a-z0-9._-]{0,199}")
_LONGEST: Final = 65_536
_BATCH: Final = 500


class SecretUnreadable(PlatformError):
    """A stored secret can't be decrypted: its row was changed, or its key is not in this PLATFORM_HOME."""

    code = "secret_unreadable"
    default_detail = "A stored secret can't be read; the server's log says which, and why"


class SecretOwner(NamedTuple):
    """The owner of a secret: an account or an organization by id, a plugin by name."""

    kind: OwnerKind
    id: int | str

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


class SecretEntry(NamedTuple):
    """What can be shown of a secret."""

    name: str
    changed_at: datetime


class OwnerSecrets:
    """The secrets of owners. Values are returned only as SecretStr; the audit log records changes by name."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    def put(
        self,
        unit: Unit,
        owner: SecretOwner,
        name: str,
        value: str | SecretStr,
        origin: Origin | None = None,
    ) -> None:
        """Store a secret, replacing an earlier one of the same name. Raises ValueError if name or value are
        invalid.

        `origin` is `Caller.origin`, for the audit log.
        """
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        _check(name, text)
        row = _find(unit.session, owner, name)
        existed = row is not None
        if row is None:
            row = OwnerSecret(owner_kind=owner.kind, owner_id=str(owner.id), name=name)
            row.account_id = int(owner.id) if owner.kind == "account" else None
            unit.session.add(row)
        self._seal(row, text, self._ring.newest())
        row.changed_at = utc_now()
        unit.session.flush()
        _note(unit, "secret.stored", owner, name, (existed, True), origin)

    def get(self, session: Session, owner: SecretOwner, name: str) -> SecretStr | None:
        """The secret, or None. Raises SecretUnreadable."""
        row = _find(session, owner, name)
        return None if row is None else SecretStr(self._open(row))

    def unreadable(self, session: Session) -> list[str]:
        """The secrets that can't be decrypted, as owner and name."""
        unreadable = []
        for row in session.scalars(
            select(OwnerSecret).order_by(OwnerSecret.owner_kind, OwnerSecret.owner_id)
        ):
            try:
                self._open(row)
            except SecretUnreadable:
                unreadable.append(f"{row.owner_kind} {row.owner_id}: {row.name}")
        return unreadable

    def list(self, session: Session, owner: SecretOwner) -> list[SecretEntry]:
        """The names of the owner's secrets, and when they changed, without values."""
        columns = select(OwnerSecret.name, OwnerSecret.changed_at)
        rows = session.execute(_of(columns, owner).order_by(OwnerSecret.name))
        return [SecretEntry(name, changed_at) for name, changed_at in rows]

    def remove(self, unit: Unit, owner: SecretOwner, name: str, origin: Origin | None = None) -> bool:
        """Delete a secret. Returns whether there was one."""
        row = _find(unit.session, owner, name)
        if row is None:
            return False
        unit.session.delete(row)
        unit.session.flush()
        _note(unit, "secret.removed", owner, name, (True, False), origin)
        return True

    def remove_all(self, unit: Unit, owner: SecretOwner, origin: Origin | None = None) -> int:
        """Delete all secrets of an owner that is being deleted. Returns how many.

        An account's secrets are deleted with it. If you delete an organization, call this in the same
        unit.
        """
        names = [entry.name for entry in self.list(unit.session, owner)]
        unit.session.execute(_of(delete(OwnerSecret), owner))
        for name in names:
            _note(unit, "secret.removed", owner, name, (True, False), origin)
        return len(names)

    async def change_key(self, database: Database) -> int:
        """Re-encrypt every secret with a new key; returns how many. If killed, run it again: nothing is lost.

        One change at a time. Raises KeyFromEnvironment.
        """
        async with installation_lock(database, "sealing"):
            key = self._ring.add()
            count = 0
            while done := await database.write(self._reseal, key):
                count += done
            self._ring.forget(set(await database.read(_keys_in_use)))
        return count

    def _reseal(self, unit: Unit, key: Key) -> int:
        old = select(OwnerSecret).where(OwnerSecret.key_id != key.id).limit(_BATCH).with_for_update()
        rows = list(unit.session.scalars(old))
        for row in rows:
            self._seal(row, self._open(row), key)
        unit.session.flush()
        return len(rows)

    def _seal(self, row: OwnerSecret, text: str, key: Key) -> None:
        row.key_id = key.id
        row.nonce, row.sealed = key.seal(text, _place(row))

    def _open(self, row: OwnerSecret) -> str:
        where = f"{row.owner_kind}:{row.owner_id}/{row.name}"
        key = self._ring.find(row.key_id)
        if key is None:
            log.error("secret %s: its key %s is not in PLATFORM_HOME/secrets/%s", where, row.key_id, NAME)
            raise SecretUnreadable
        try:
            return key.open(row.nonce, row.sealed, _place(row))
        except SealBroken:
            log.error("secret %s can't be decrypted: its row was changed from outside", where)
            raise SecretUnreadable from None


OWNER_SECRETS: ResourceKey[OwnerSecrets] = ResourceKey("secrets of owners")


def secrets_of(platform: Platform) -> OwnerSecrets:
    """The same for a command, whose platform opens no plugin's resources."""
    return OwnerSecrets(KeyRing(platform.secrets))


def _place(row: OwnerSecret) -> bytes:
    """What a sealed text is bound to: it opens nowhere else, so that rows can't be swapped."""
    return "\n".join((row.owner_kind, row.owner_id, row.name, row.key_id)).encode()


def _of(statement: Any, owner: SecretOwner) -> Any:
    return statement.where(OwnerSecret.owner_kind == owner.kind, OwnerSecret.owner_id == str(owner.id))


def _find(session: Session, owner: SecretOwner, name: str) -> OwnerSecret | None:
    mine = _of(select(OwnerSecret), owner).where(OwnerSecret.name == name)
    return session.scalars(mine).one_or_none()


def _keys_in_use(session: Session) -> list[str]:
    return list(session.scalars(select(OwnerSecret.key_id).distinct()))


def _check(name: str, text: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"'{name[:40]}' is not a valid name for a secret; use lower-case letters, digits, '.', '_', '-'"
        )
    if not text or len(text) > _LONGEST:
        raise ValueError(f"a secret must have 1 to {_LONGEST} characters")


def _note(
    unit: Unit,
    action: str,
    owner: SecretOwner,
    name: str,
    is_set: tuple[bool, bool],
    origin: Origin | None,
) -> None:
    before, after = ({"is_set": state} for state in is_set)
    organization = int(owner.id) if owner.kind == "organization" else None
    audit(
        unit,
        action,
        "secret",
        f"{owner}/{name}"[:255],
        before=before,
        after=after,
        origin=origin,
        scope_org_id=organization,
    )
