"""The credential of a source: a secret of the account that entered it, or of this plugin for a service."""

from __future__ import annotations

from pydantic import SecretStr
from sqlalchemy.orm import Session

from builtin_plugins.owner_secrets.api import OWNER_SECRETS, SecretOwner
from builtin_plugins.sources.models import SourceRecord
from kernel.sdk import Platform, Unit
from kernel.sdk.accounts import Origin


def _owner(source: SourceRecord) -> SecretOwner:
    if source.account_id is None:
        return SecretOwner("plugin", "sources")
    return SecretOwner("account", source.account_id)


def _name(source: SourceRecord) -> str:
    return f"sources.{source.id}"


def keep_credential(
    platform: Platform, unit: Unit, source: SourceRecord, value: SecretStr, origin: Origin
) -> None:
    """Store it, encrypted, in place of an earlier one."""
    platform.resource(OWNER_SECRETS).put(unit, _owner(source), _name(source), value, origin)


def forget_credential(
    platform: Platform, unit: Unit, source: SourceRecord, origin: Origin | None = None
) -> None:
    """Delete it, if there is one."""
    platform.resource(OWNER_SECRETS).remove(unit, _owner(source), _name(source), origin)


def has_credential(platform: Platform, session: Session, source: SourceRecord) -> bool:
    """Whether there is one."""
    entries = platform.resource(OWNER_SECRETS).list(session, _owner(source))
    return any(entry.name == _name(source) for entry in entries)


async def read_credential(platform: Platform, source: SourceRecord) -> SecretStr | None:
    """The credential, for opening the source. Raises SecretUnreadable."""
    secrets = platform.resource(OWNER_SECRETS)
    return await platform.database.read(secrets.get, _owner(source), _name(source))
