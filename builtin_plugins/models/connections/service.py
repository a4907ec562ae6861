"""Connect model servers, test and disconnect them; choose default models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import SecretStr
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from builtin_plugins.models.addresses import NamedRuntime, is_server_name
from builtin_plugins.models.connections.errors import (
    ConnectingDisabled,
    ConnectionFixed,
    ConnectionNotFound,
    DefaultFixed,
)
from builtin_plugins.models.connections.live import LIVE_SERVERS
from builtin_plugins.models.connections.reach import ServerTest, check_server
from builtin_plugins.models.connections.rows import (
    DefaultModels,
    read_defaults,
    read_key,
    remove_connection,
    save_connection,
    save_defaults,
)
from builtin_plugins.models.models import ModelConnection
from builtin_plugins.models.names import canonical
from builtin_plugins.models.schemas_connections import (
    ConnectionOut,
    ConnectionsOut,
    ConnectionWanted,
    DefaultModelsOut,
    DefaultModelsWanted,
    NearbyServerOut,
    NearbyServersOut,
    ServerCheck,
    ServerTestOut,
)
from builtin_plugins.models.services.catalog import find
from builtin_plugins.models.services.model_calls import MODELS, embeds
from builtin_plugins.models.settings import ModelsSettings
from builtin_plugins.owner_secrets.api import OWNER_SECRETS
from kernel.sdk import BadRequest, Context, Unprocessable, split_list

_NEARBY_SECONDS: Final = 2.0


async def list_connections(ctx: Context) -> ConnectionsOut:
    """Those of the settings, then the saved ones."""
    settings = ctx.settings_of(ModelsSettings)
    fixed = settings.named_runtimes()
    names = {server.name for server in fixed}
    rows = await ctx.read(_rows)
    secrets = ctx.resource(OWNER_SECRETS)
    keys = {row.name: await ctx.read(read_key, secrets, row.name) for row in rows}
    saved = [
        ConnectionOut(
            name=row.name,
            kind="ollama" if row.kind == "ollama" else "openai",
            url=row.url,
            origin="saved",
            has_key=keys[row.name] is not None,
            is_used=row.name not in names and settings.connectable != "none",
            can_pull=row.kind == "ollama",
            changed_at=row.changed_at,
        )
        for row in rows
    ]
    return ConnectionsOut(items=[*map(_of_settings, fixed), *saved], connectable=settings.connectable)


async def find_nearby(ctx: Context) -> NearbyServersOut:
    """The servers that answer at the usual addresses."""
    settings = ctx.settings_of(ModelsSettings)
    if settings.connectable != "everywhere":
        return NearbyServersOut(items=[])
    names = {item.url: item.name for item in (await list_connections(ctx)).items if item.is_used}
    addresses = split_list(settings.nearby)
    tests = await asyncio.gather(*(_look(ctx, address) for address in addresses))
    items = [
        NearbyServerOut(**_test_out(url, test).model_dump(), connection=names.get(url))
        for url, test in zip(addresses, tests, strict=True)
        if test is not None
    ]
    return NearbyServersOut(items=items)


async def test_address(ctx: Context, body: ServerCheck) -> ServerTestOut:
    """What a server at an address shows. Raises the error of the step that failed."""
    _refuse_disabled(ctx)
    test = await check_server(ctx.platform, body.url, body.key, kind=body.kind, model=body.model)
    return _test_out(body.url, test)


async def test_connection(ctx: Context, name: str) -> ServerTestOut:
    """What a connected server shows. Raises ConnectionNotFound, and the error of the step that failed."""
    server = await _find(ctx, name)
    answers = ctx.resource(MODELS).defaults.answers or ""
    model = answers.removeprefix(f"{name}/") if answers.startswith(f"{name}/") else None
    test = await check_server(ctx.platform, server.url, server.key, kind=server.kind, model=model)
    return _test_out(server.url, test)


async def connect(ctx: Context, name: str, body: ConnectionWanted) -> ConnectionOut:
    """Test a server, then save it. Raises ConnectionFixed, and the error of the step that failed."""
    settings = ctx.settings_of(ModelsSettings)
    _refuse_disabled(ctx)
    if not is_server_name(name):
        raise Unprocessable.field(
            ("path", "name"),
            "must be a word of at most 32 lower-case letters, digits, '_' and '-', and not 'local'",
            name[:40],
        )
    if name in {server.name for server in settings.named_runtimes()}:
        raise ConnectionFixed()
    if body.default_model is not None and settings.answers_model is not None:
        raise DefaultFixed()
    key = await _key(ctx, name, body)
    test = await check_server(ctx.platform, body.url, key, kind=body.kind, model=body.default_model)
    model = body.default_model or _first_model(ctx, name, test)
    server = NamedRuntime(name, test.kind, body.url, key)
    await _write(ctx, save_connection, ctx.caller, ctx.resource(OWNER_SECRETS), server, model)
    items = (await list_connections(ctx)).items
    return next(item for item in items if item.name == name and item.origin == "saved")


async def disconnect(ctx: Context, name: str) -> None:
    """Remove a connection. Raises ConnectionFixed, ConnectionNotFound."""
    rows = {row.name for row in await ctx.read(_rows)}
    if name not in rows and name in {item.name for item in ctx.settings_of(ModelsSettings).named_runtimes()}:
        raise ConnectionFixed()
    await _write(ctx, remove_connection, ctx.caller, ctx.resource(OWNER_SECRETS), name)


async def show_defaults(ctx: Context) -> DefaultModelsOut:
    """The default models."""
    defaults = await ctx.read(read_defaults)
    return DefaultModelsOut(
        **defaults._asdict(), answers_setting=ctx.settings_of(ModelsSettings).answers_model
    )


async def set_defaults(ctx: Context, body: DefaultModelsWanted) -> DefaultModelsOut:
    """Replace the default models. Raises DefaultFixed, UnknownModel."""
    fixed = ctx.settings_of(ModelsSettings).answers_model
    if fixed is not None and body.answers not in (None, fixed):
        raise DefaultFixed()
    for model in {body.answers, body.helpers} - {None}:
        await find(ctx.resource(MODELS), str(model))
    await _write(ctx, save_defaults, ctx.caller, DefaultModels(body.answers, body.helpers))
    return await show_defaults(ctx)


async def _write(ctx: Context, function: Callable[..., None], *arguments: Any) -> None:
    """Write, again if another request created the same row meanwhile; then use it here, too."""
    try:
        await ctx.write(function, *arguments)
    except IntegrityError:
        await ctx.write(function, *arguments)
    await ctx.resource(LIVE_SERVERS).refresh()


async def _key(ctx: Context, name: str, body: ConnectionWanted) -> SecretStr | None:
    """The key to use: the one sent, or the stored one if the server stays the same."""
    if "key" in body.model_fields_set:
        return body.key
    row = {row.name: row for row in await ctx.read(_rows)}.get(name)
    if row is None or _origin(row.url) != _origin(body.url):
        return None
    return await ctx.read(read_key, ctx.resource(OWNER_SECRETS), name)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _first_model(ctx: Context, name: str, test: ServerTest) -> str | None:
    """The model that becomes the default, because there was none or this server has it no longer."""
    server, _, model = (ctx.resource(MODELS).defaults.answers or f"{name}/").partition("/")
    is_left = server != name or canonical(model) in {canonical(one) for one in test.models}
    if is_left or ctx.settings_of(ModelsSettings).answers_model:
        return None
    chats = [model for model in test.models if not embeds(model)]
    return chats[0] if chats and (test.kind == "ollama" or len(chats) == 1) else None


async def _find(ctx: Context, name: str) -> NamedRuntime:
    for server in ctx.settings_of(ModelsSettings).named_runtimes():
        if server.name == name:
            return server
    _refuse_disabled(ctx)
    row = {row.name: row for row in await ctx.read(_rows)}.get(name)
    if row is None:
        raise ConnectionNotFound()
    key = await ctx.read(read_key, ctx.resource(OWNER_SECRETS), name)
    return NamedRuntime(name, "ollama" if row.kind == "ollama" else "openai", row.url, key)


async def _look(ctx: Context, address: str) -> ServerTest | None:
    try:
        return await check_server(ctx.platform, address, None, seconds=_NEARBY_SECONDS)
    except BadRequest:
        return None


def _refuse_disabled(ctx: Context) -> None:
    if ctx.settings_of(ModelsSettings).connectable == "none":
        raise ConnectingDisabled()


def _rows(session: Session) -> list[ModelConnection]:
    return list(session.scalars(select(ModelConnection).order_by(ModelConnection.created_at)))


def _of_settings(server: NamedRuntime) -> ConnectionOut:
    parts = urlsplit(server.url)
    return ConnectionOut(
        name=server.name,
        kind=server.kind,
        url=server.url.replace(parts.netloc, parts.netloc.rpartition("@")[2], 1),
        origin="settings",
        has_key=server.key is not None,
        is_used=True,
        can_pull=server.kind == "ollama",
        changed_at=None,
    )


def _test_out(url: str, test: ServerTest) -> ServerTestOut:
    chats = [model for model in test.models if not embeds(model)]
    return ServerTestOut(url=url, kind=test.kind, models=list(test.models), chat_models=chats)
