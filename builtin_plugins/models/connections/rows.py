"""Connections and default models as rows; each function is part of a unit of work."""

from __future__ import annotations

from typing import Final, NamedTuple

from pydantic import SecretStr
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from builtin_plugins.models.addresses import Kind, NamedRuntime
from builtin_plugins.models.connections.errors import ConnectionNotFound
from builtin_plugins.models.models import DefaultModel, ModelConnection
from builtin_plugins.owner_secrets.api import OwnerSecrets, SecretOwner, SecretUnreadable
from kernel.sdk import Caller, Unit, audit, utc_now

CHANGED: Final = "models.connections"
_OWNER: Final = SecretOwner("plugin", "models")


class DefaultModels(NamedTuple):
    """The models that administrators chose, for answers and for helping work; None if they chose none."""

    answers: str | None = None
    helpers: str | None = None


class StoredServers(NamedTuple):
    """All that is stored: the connections, oldest first, and the default models."""

    connections: list[NamedRuntime]
    defaults: DefaultModels


def read_servers(session: Session, secrets: OwnerSecrets) -> StoredServers:
    """Every connection with its key. One whose key can't be read has none; the log says so."""
    rows = session.scalars(select(ModelConnection).order_by(ModelConnection.created_at, ModelConnection.name))
    return StoredServers([_runtime(session, secrets, row) for row in rows], read_defaults(session))


def any_connection(session: Session) -> bool:
    """Whether a server is connected."""
    return session.scalar(select(ModelConnection.name).limit(1)) is not None


def read_defaults(session: Session) -> DefaultModels:
    """The default models."""
    chosen = {row.purpose: row.model for row in session.scalars(select(DefaultModel))}
    return DefaultModels(chosen.get("answers"), chosen.get("helpers"))


def read_key(session: Session, secrets: OwnerSecrets, name: str) -> SecretStr | None:
    """The key of a connection, or None."""
    try:
        return secrets.get(session, _OWNER, _secret(name))
    except SecretUnreadable:
        return None


def save_connection(
    unit: Unit, caller: Caller, secrets: OwnerSecrets, server: NamedRuntime, default_model: str | None
) -> None:
    """Create or replace a connection, with its key; `default_model` becomes the model for answers."""
    row = unit.session.get(ModelConnection, server.name)
    before = None if row is None else {"kind": row.kind, "url": row.url}
    if row is None:
        row = ModelConnection(name=server.name)
        unit.session.add(row)
    row.kind, row.url, row.changed_at = server.kind, server.url, utc_now()
    unit.session.flush()
    if server.key is None:
        secrets.remove(unit, _OWNER, _secret(server.name), caller.origin)
    else:
        secrets.put(unit, _OWNER, _secret(server.name), server.key, caller.origin)
    after = {"kind": server.kind, "url": server.url}
    action = "model_server.connected" if before is None else "model_server.changed"
    audit(unit, action, "model_server", server.name, before=before, after=after, origin=caller.origin)
    if default_model is not None:
        old = read_defaults(unit.session)
        _save_defaults(unit, caller, old._replace(answers=f"{server.name}/{default_model}"))
    unit.notify(CHANGED, server.name)


def remove_connection(unit: Unit, caller: Caller, secrets: OwnerSecrets, name: str) -> None:
    """Remove a connection, its key, and the default models that it runs. Raises ConnectionNotFound."""
    row = unit.session.get(ModelConnection, name)
    if row is None:
        raise ConnectionNotFound()
    before = {"kind": row.kind, "url": row.url}
    unit.session.delete(row)
    secrets.remove(unit, _OWNER, _secret(name), caller.origin)
    old = read_defaults(unit.session)
    remaining = (None if model and model.startswith(f"{name}/") else model for model in old)
    _save_defaults(unit, caller, DefaultModels(*remaining))
    audit(unit, "model_server.disconnected", "model_server", name, before=before, origin=caller.origin)
    unit.notify(CHANGED, name)


def save_defaults(unit: Unit, caller: Caller, defaults: DefaultModels) -> None:
    """Replace the default models."""
    _save_defaults(unit, caller, defaults)
    unit.notify(CHANGED, "")


def _save_defaults(unit: Unit, caller: Caller, defaults: DefaultModels) -> None:
    before = read_defaults(unit.session)
    if before == defaults:
        return
    unit.session.execute(delete(DefaultModel))
    chosen = {purpose: model for purpose, model in defaults._asdict().items() if model is not None}
    unit.session.add_all(DefaultModel(purpose=purpose, model=model) for purpose, model in chosen.items())
    unit.session.flush()
    audit(
        unit,
        "model.default_set",
        "model",
        "default",
        before=before._asdict(),
        after=defaults._asdict(),
        origin=caller.origin,
    )


def _runtime(session: Session, secrets: OwnerSecrets, row: ModelConnection) -> NamedRuntime:
    kind: Kind = "ollama" if row.kind == "ollama" else "openai"
    return NamedRuntime(row.name, kind, row.url, read_key(session, secrets, row.name))


def _secret(name: str) -> str:
    return f"models.connection.{name}"
