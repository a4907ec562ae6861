"""Changes a plugin's settings while it runs: validated, stored, applied in every process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr
from sqlalchemy import delete, select

from builtin_plugins.owner_secrets.api import OWNER_SECRETS, SecretOwner
from kernel.sdk import (
    BadRequest,
    Caller,
    Conflict,
    Forbidden,
    Platform,
    Settings,
    StartupError,
    Unit,
    audit,
    utc_now,
)
from kernel.sdk.operations import PLUGIN_SETTINGS

from ..live import TOPIC
from ..models import ConfigValue
from .fields import MASK, fixed_fields, is_secret, keys_of, read_secrets, secret_name

_LOCK = "plugin_registry.config"


async def change_config(
    caller: Caller, plugin: str, cls: type[Settings], values: Mapping[str, Any]
) -> list[str]:
    """Store the given values, by key; null reverts to the environment's. Returns the changed keys.

    A secret sent back as its mask stays as it is. Raises BadRequest, naming the key and the remedy; Forbidden
    for a setting that administrators alone may change, and Conflict for one that the environment sets.
    """
    changes = _by_field(caller, cls, values)
    return await caller.platform.database.write(_change, caller, plugin, cls, changes)


def _change(
    unit: Unit, caller: Caller, plugin: str, cls: type[Settings], changes: Mapping[str, Any]
) -> list[str]:
    unit.lock(_LOCK)
    secrets, fixed = caller.platform.resource(OWNER_SECRETS), fixed_fields(caller.platform, cls)
    query = select(ConfigValue).where(ConfigValue.plugin == plugin)
    before = {row.field: row.value for row in unit.session.scalars(query)}
    unchanged = {field: value for field, value in before.items() if field not in {*changes, *fixed}}
    readable = read_secrets(unit.session, secrets, plugin, cls, unchanged)
    merged = {field: value for field, value in {**readable, **changes}.items() if value is not None}
    valid = _validated(caller.platform, plugin, cls, merged)
    _refuse_endless(cls, changes, valid)
    for field, value in changes.items():
        if is_secret(cls, field):
            _keep_secret(unit, caller, plugin, field, value)
        _write(unit, plugin, field, None if value is None else _plain(getattr(valid, field)))
    was, now = _states(cls, changes, before, valid)
    if now:
        audit(unit, "plugin.configured", "plugin", plugin, before=was, after=now, origin=caller.origin)
    unit.notify(TOPIC, plugin)
    return list(now)


def _states(
    cls: type[Settings], changes: Mapping[str, Any], before: Mapping[str, Any], valid: Settings
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The stored values of the changed settings, by key: null if there is none, a mask for a secret."""
    was, now = {}, {}
    for key, field in keys_of(cls, administered=True).items():
        if field in changes:
            was[key] = _logged(cls, field, before.get(field), field in before)
            now[key] = _logged(cls, field, _plain(getattr(valid, field)), changes[field] is not None)
    return was, now


def _logged(cls: type[Settings], field: str, value: Any, is_stored: bool) -> Any:
    if not is_stored:
        return None
    return MASK if is_secret(cls, field) else value


def _by_field(caller: Caller, cls: type[Settings], values: Mapping[str, Any]) -> dict[str, Any]:
    is_admin = caller.principal.is_admin
    keys, fixed = keys_of(cls, administered=is_admin), fixed_fields(caller.platform, cls)
    for key, value in values.items():
        if key not in keys:
            if key in keys_of(cls, administered=True):
                raise Forbidden(f"{key} can only be changed by an administrator")
            raise BadRequest(f"'{key[:80]}' is not a setting of this plugin; it has: {', '.join(keys)}")
        if keys[key] in fixed:
            raise Conflict(f"{key} is set in the server's environment, which wins; change it there")
        if value is not None and not isinstance(value, str | int | float):
            raise BadRequest(f"{key} must be a string, a number, true or false, or null for the default")
        if isinstance(value, str) and "\x00" in value:
            raise BadRequest(f"{key} contains a NUL character; remove it")
    values_by_field = {keys[key]: value for key, value in values.items()}
    return {f: value for f, value in values_by_field.items() if not (is_secret(cls, f) and value == MASK)}


def _validated(platform: Platform, plugin: str, cls: type[Settings], stored: Mapping[str, Any]) -> Settings:
    try:
        return platform.resource(PLUGIN_SETTINGS).read(plugin, cls, stored)
    except StartupError as error:
        raise BadRequest(str(error)) from None


def _refuse_endless(cls: type[Settings], changes: Mapping[str, Any], valid: Settings) -> None:
    """Raise BadRequest, naming the key, for an infinite number: no limit works with it, no JSON has it."""
    for key, field in keys_of(cls, administered=True).items():
        value = getattr(valid, field)
        if changes.get(field) is not None and isinstance(value, float) and not math.isfinite(value):
            raise BadRequest(f"{key} must be a finite number")


def _keep_secret(unit: Unit, caller: Caller, plugin: str, field: str, value: Any) -> None:
    secrets = caller.platform.resource(OWNER_SECRETS)
    owner, name = SecretOwner("plugin", plugin), secret_name(field)
    if value is None:
        secrets.remove(unit, owner, name, caller.origin)
    else:
        secrets.put(unit, owner, name, str(value), caller.origin)


def _write(unit: Unit, plugin: str, field: str, value: Any) -> None:
    mine = (ConfigValue.plugin == plugin) & (ConfigValue.field == field)
    unit.session.execute(delete(ConfigValue).where(mine))
    if value is not None:
        plain_value = None if value is _SECRET else value
        unit.session.add(ConfigValue(plugin=plugin, field=field, value=plain_value, changed_at=utc_now()))
        unit.session.flush()


_SECRET = object()


def _plain(value: Any) -> Any:
    """A value as stored in JSON; null for a secret."""
    if isinstance(value, SecretStr):
        return _SECRET
    return value if isinstance(value, bool | int | float | str) else str(value)
