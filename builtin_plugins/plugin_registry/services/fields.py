"""Settings classes as clients see them: configurable fields, with types and values."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from sqlalchemy.orm import Session

from builtin_plugins.owner_secrets.api import OwnerSecrets, SecretOwner
from kernel.sdk import Platform, Settings
from kernel.sdk.operations import PLUGIN_SETTINGS

from ..schemas import ConfigField

MASK = "***"
Kind = Literal["string", "int", "float", "bool"]
_KINDS: dict[Any, Kind] = {bool: "bool", int: "int", float: "float"}


def keys_of(cls: type[Settings], *, administered: bool = False) -> dict[str, str]:
    """From key, as in the environment, to field name: configurable fields, in the order of the class.

    `administered`: also the fields that only administrators may change.
    """
    names, fields = cls.env_names(), cls.configurable | (cls.administered if administered else frozenset())
    return {names[field][0]: field for field in cls.model_fields if field in fields}


def fixed_fields(platform: Platform, cls: type[Settings]) -> dict[str, str]:
    """The administered fields that the environment sets, which wins, with the variable of each."""
    variables, names = platform.resource(PLUGIN_SETTINGS).loader.variables, cls.env_names()
    setters = {field: next(filter(variables.get, names[field]), None) for field in cls.administered}
    return {field: variable for field, variable in setters.items() if variable is not None}


def describe(cls: type[Settings], keys: Mapping[str, str], fixed: Mapping[str, str]) -> list[ConfigField]:
    """The fields with these keys."""
    return [_describe(key, cls.model_fields[field], fixed.get(field)) for key, field in keys.items()]


def values_in_effect(settings: Settings, keys: Mapping[str, str]) -> dict[str, Any]:
    """The values in effect, by key; secrets that are set are masked."""
    return {key: _masked(getattr(settings, field)) for key, field in keys.items()}


def is_secret(cls: type[Settings], field: str) -> bool:
    """Whether the field's values must not be shown."""
    return SecretStr in _choices(cls.model_fields[field])


def secret_name(field: str) -> str:
    """The name of a secret setting among the plugin's secrets."""
    return f"config.{field}"


def read_secrets(
    session: Session, secrets: OwnerSecrets, plugin: str, cls: type[Settings], stored: Mapping[str, Any]
) -> dict[str, Any]:
    """Stored values with the secrets filled in; fields that can no longer be changed are left out."""
    owner = SecretOwner("plugin", plugin)
    found = {}
    for field, value in stored.items():
        if field in cls.configurable | cls.administered:
            secret = secrets.get(session, owner, secret_name(field)) if is_secret(cls, field) else None
            found[field] = value if secret is None else secret.get_secret_value()
    return found


def _describe(key: str, field: FieldInfo, fixed: str | None) -> ConfigField:
    choices = _choices(field)
    return ConfigField(
        key=key,
        type=next((_KINDS[choice] for choice in choices if choice in _KINDS), "string"),
        default=None if field.default is PydanticUndefined else _masked(field.default),
        description=field.description or "",
        secret=SecretStr in choices,
        options=[str(choice) for choice in choices if isinstance(choice, str)] or None,
        fixed_by=fixed,
    )


def _choices(field: FieldInfo) -> list[Any]:
    """The types, and the literal values, that a field's annotation allows; None left out."""
    pending, found = [field.annotation], []
    while pending:
        kind = pending.pop(0)
        if typing.get_origin(kind) in (typing.Union, types.UnionType, Literal):
            pending += typing.get_args(kind)
        elif kind is not None and kind is not type(None):
            found.append(kind)
    return found


def _masked(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    return str(value) if isinstance(value, Path) else value
