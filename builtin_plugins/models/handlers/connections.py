"""Routes of connected model servers and default models."""

from __future__ import annotations

from builtin_plugins.models.connections import choices, service
from builtin_plugins.models.connections.errors import (
    FAILED_STEPS,
    ConnectingDisabled,
    ConnectionFixed,
    ConnectionNotFound,
    DefaultFixed,
)
from builtin_plugins.models.errors import UnknownModel
from builtin_plugins.models.schemas_connections import (
    ConnectionOut,
    ConnectionsOut,
    ConnectionWanted,
    DefaultModelsOut,
    DefaultModelsWanted,
    ModelChoicesOut,
    NearbyServersOut,
    ServerCheck,
    ServerTestOut,
)
from kernel.sdk import ADMIN, AUTHENTICATED, Context, Message, Rate, RouteTable, Unavailable

routes = RouteTable("Models")
_TESTS = Rate(30)


@routes.get(
    "/models/choices", access=AUTHENTICATED, returns=ModelChoicesOut, token_scopes=("ask",), long=True
)
async def list_choices(ctx: Context) -> ModelChoicesOut:
    """List the models that you may choose for answers, and the one that answers if you choose none."""
    return await choices.list_choices(ctx)


@routes.get("/models/defaults", access=ADMIN, returns=DefaultModelsOut)
async def get_defaults(ctx: Context) -> DefaultModelsOut:
    """Show the default models."""
    return await service.show_defaults(ctx)


@routes.put(
    "/models/defaults",
    access=ADMIN,
    body=DefaultModelsWanted,
    returns=DefaultModelsOut,
    errors=(DefaultFixed, UnknownModel, Unavailable),
    long=True,
)
async def set_defaults(ctx: Context, body: DefaultModelsWanted) -> DefaultModelsOut:
    """Choose the default models; every process uses them at once."""
    return await service.set_defaults(ctx, body)


@routes.get("/models/connections", access=ADMIN, returns=ConnectionsOut)
async def list_connections(ctx: Context) -> ConnectionsOut:
    """List the model servers: those of the settings, then the connected ones."""
    return await service.list_connections(ctx)


@routes.get("/models/connections/nearby", access=ADMIN, returns=NearbyServersOut, long=True)
async def find_nearby(ctx: Context) -> NearbyServersOut:
    """Look for an Ollama server on this machine and at its usual address outside a container."""
    return await service.find_nearby(ctx)


@routes.post(
    "/models/connections/test",
    access=ADMIN,
    body=ServerCheck,
    returns=ServerTestOut,
    errors=(ConnectingDisabled, *FAILED_STEPS),
    rate=_TESTS,
    long=True,
)
async def test_address(ctx: Context, body: ServerCheck) -> ServerTestOut:
    """Test a model server without saving anything. The error's code names the step that failed."""
    return await service.test_address(ctx, body)


@routes.put(
    "/models/connections/{name}",
    access=ADMIN,
    body=ConnectionWanted,
    returns=ConnectionOut,
    errors=(ConnectingDisabled, ConnectionFixed, DefaultFixed, *FAILED_STEPS),
    rate=_TESTS,
    long=True,
)
async def connect(ctx: Context, name: str, body: ConnectionWanted) -> ConnectionOut:
    """Connect a model server, or change a connection.

    It is tested before it is saved; the error's code names the step that failed. Every process uses it
    at once.
    """
    return await service.connect(ctx, name, body)


@routes.post(
    "/models/connections/{name}/test",
    access=ADMIN,
    returns=ServerTestOut,
    errors=(ConnectingDisabled, ConnectionNotFound, *FAILED_STEPS),
    rate=_TESTS,
    long=True,
)
async def test_connection(ctx: Context, name: str) -> ServerTestOut:
    """Test a model server that is connected or configured. The error's code names the step that failed."""
    return await service.test_connection(ctx, name)


@routes.delete(
    "/models/connections/{name}",
    access=ADMIN,
    returns=Message,
    errors=(ConnectionFixed, ConnectionNotFound),
)
async def disconnect(ctx: Context, name: str) -> Message:
    """Remove a connection, its key, and the default models that it runs."""
    await service.disconnect(ctx, name)
    return Message(message=f"'{name}' disconnected")
