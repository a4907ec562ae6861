"""How far a connection may reach, and how a server at an address is tested before it is saved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr
from yarl import URL

from builtin_plugins.inference import api as inference
from builtin_plugins.models.addresses import Kind
from builtin_plugins.models.connections.errors import (
    ServerFailed,
    ServerForbidden,
    ServerKeyRefused,
    ServerLacksModel,
    ServerNameUnknown,
    ServerNotAccepting,
    ServerSilent,
    ServerTlsInvalid,
    ServerUnlike,
)
from builtin_plugins.models.names import canonical
from builtin_plugins.models.runtimes import (
    AnswerMalformed,
    ModelRuntime,
    ModelRuntimeError,
    OllamaRuntime,
    OpenAIRuntime,
    RuntimeLacksModel,
    RuntimeLimits,
    RuntimeTimeout,
)
from builtin_plugins.models.runtimes.errors import RuntimeRefused
from builtin_plugins.models.runtimes.protocol import GenerationRequest
from builtin_plugins.models.settings import ModelsSettings
from kernel.sdk import OUTGOING, BadRequest, OutgoingClient, Platform
from kernel.sdk.outgoing import CallFailed, CallTimedOut, DestinationRefused

_KEY_REFUSED: Final = (401, 403)
_OBJECTIONS: Final = (400, 422)
_KINDS: Final[tuple[Kind, ...]] = ("ollama", "openai")
_STEPS: Final = {"name": ServerNameUnknown, "tls": ServerTlsInvalid, "connection": ServerNotAccepting}


@dataclass(frozen=True)
class ServerTest:
    """What a test showed: the protocol of the server, and the names of its models."""

    kind: Kind
    models: tuple[str, ...]


@asynccontextmanager
async def connection_client(platform: Platform, url: str) -> AsyncIterator[OutgoingClient]:
    """A client that reaches the host of `url` and no other, and there no link-local or metadata address.

    If only public addresses may be connected, those and what PLATFORM_OUTGOING_ALLOWED names.
    """
    outgoing, address = platform.resource(OUTGOING), URL(url)
    hosts = {address.host or "", address.raw_host or ""}  # as people write it, and as DNS does
    if platform.settings_of(ModelsSettings).connectable == "public":
        async with outgoing.client("models", hosts=hosts) as client:
            yield client
    else:
        async with outgoing.client("models", within=hosts) as client:
            yield client


async def check_server(
    platform: Platform,
    url: str,
    key: SecretStr | None,
    *,
    kind: Kind | None = None,
    model: str | None = None,
    seconds: float | None = None,
) -> ServerTest:
    """List the server's models, and where a key is used, let `model` write a word, which proves the key.

    Without `kind`, Ollama's protocol is tried first. Raises the error of the step that failed.
    """
    limits = _limits(platform.settings_of(ModelsSettings), seconds)
    async with connection_client(platform, url) as client:
        tested = await _list(client, url, key, (kind,) if kind else _KINDS, limits)
        if model is not None:
            if canonical(model) not in {canonical(name) for name in tested.models}:
                raise ServerLacksModel(f"The server has no model '{model}'. Choose one of its own.")
            if key is not None:
                await _write_word(_runtime(client, url, key, tested.kind, limits), model)
    return tested


def _limits(settings: ModelsSettings, seconds: float | None) -> RuntimeLimits:
    most = settings.test_seconds if seconds is None else seconds
    connect = min(settings.connect_seconds, most)
    return RuntimeLimits(connect_s=connect, idle_s=most, total_s=most, look_s=most)


def _runtime(
    client: OutgoingClient, url: str, key: SecretStr | None, kind: Kind, limits: RuntimeLimits
) -> ModelRuntime:
    runtime = OllamaRuntime if kind == "ollama" else OpenAIRuntime
    return runtime(client, url, api_key=key, limits=limits)


async def _list(
    client: OutgoingClient, url: str, key: SecretStr | None, kinds: tuple[Kind, ...], limits: RuntimeLimits
) -> ServerTest:
    for place, kind in enumerate(kinds, 1):
        try:
            models = await _runtime(client, url, key, kind, limits).models()
        except (RuntimeRefused, AnswerMalformed) as error:
            if place == len(kinds):  # otherwise it may speak the other protocol
                raise _failed_step(error) from None
        except ModelRuntimeError as error:
            raise _failed_step(error) from None
        else:
            return ServerTest(kind, tuple(model.id for model in models))
    raise ServerUnlike()


async def _write_word(runtime: ModelRuntime, model: str) -> None:
    message = inference.ChatMessage("user", "Say yes.")
    try:
        await runtime.generate(GenerationRequest(model, [message], temperature=0.0, max_tokens=8))
    except RuntimeRefused as error:
        if error.upstream_status not in _OBJECTIONS:  # it objects to a parameter, so it took the key
            raise _failed_step(error) from None
    except ModelRuntimeError as error:
        raise _failed_step(error) from None


def _failed_step(error: ModelRuntimeError) -> BadRequest:
    cause = error.__cause__
    if isinstance(cause, DestinationRefused):
        return ServerForbidden()
    if isinstance(cause, CallFailed):
        return _STEPS[cause.step]()
    if isinstance(error, RuntimeTimeout) or isinstance(cause, CallTimedOut):
        return ServerSilent()
    if isinstance(error, RuntimeLacksModel):
        return ServerLacksModel()
    if isinstance(error, RuntimeRefused):
        if error.upstream_status in _KEY_REFUSED:
            return ServerKeyRefused()
        return ServerUnlike() if error.upstream_status < 429 else ServerFailed()
    return ServerUnlike()
