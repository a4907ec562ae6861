"""The HTTP API of Docker or Podman at `DOCKER_HOST`: containers with the label `platform.bundle`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from yarl import URL

from builtin_plugins.platform_ops.containers.frames import BrokenStream, ContainerLine, lines_of
from builtin_plugins.platform_ops.settings import OpsSettings
from kernel.sdk import BadGateway, Platform, ResourceKey, Unavailable
from kernel.sdk.telemetry import mask

log = logging.getLogger("platform.ops")

BUNDLES_LABEL = "platform.bundle"
_SERVICE_LABEL = "com.docker.compose.service"
_SECONDS = 20
_CONNECT_SECONDS = 5
# The engine waits ten seconds before it kills a container that doesn't stop.
_STOP_SECONDS = 60
_LARGEST_ANSWER = 8 * 1024 * 1024
_LARGEST_LOG = 16 * 1024 * 1024
_FRESH_SECONDS = 1.0
_LONGEST_SOCKET = 107  # bytes of a unix socket's path, the operating system's limit


class EngineUnreachable(Unavailable):
    code = "container_engine_unreachable"
    default_detail = "The container engine at DOCKER_HOST can't be reached"


class EngineFailed(BadGateway):
    code = "container_engine_failed"
    default_detail = "The container engine at DOCKER_HOST sent an unexpected answer"


class EngineUnusable(Unavailable):
    code = "container_engine_unusable"
    default_detail = (
        "DOCKER_HOST can't be used: expected unix:///path/to/docker.sock or tcp://host:2375; correct or "
        "unset it, and restart the platform"
    )


ENGINE_ERRORS = (EngineUnreachable, EngineUnusable, EngineFailed)


class _Listed(BaseModel):
    """A container in the engine's list."""

    model_config = ConfigDict(populate_by_name=True)

    id: str = Field(alias="Id", pattern=r"^[0-9a-zA-Z_.-]{1,128}$")
    names: list[str] | None = Field(None, alias="Names")
    image: str = Field("", alias="Image")
    state: str = Field("", alias="State")
    status: str = Field("", alias="Status")
    labels: dict[str, str] | None = Field(None, alias="Labels")


class _Config(BaseModel):
    tty: bool = Field(False, alias="Tty")


class _Inspected(BaseModel):
    """A container's details."""

    config: _Config = Field(alias="Config")


_LIST = TypeAdapter(list[_Listed])
_DETAILS = TypeAdapter(_Inspected)


@dataclass(frozen=True)
class Container:
    """A container of one of the platform's services."""

    id: str
    service: str
    bundles: tuple[str, ...]
    image: str | None
    running: bool
    healthy: bool


class Engine:
    """Lists, starts and stops the containers of services, and reads their logs."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base
        self._turn = asyncio.Lock()
        self._latest: tuple[float, Sequence[Container]] = (float("-inf"), ())

    async def containers(self) -> Sequence[Container]:
        """The labeled containers by service, as they are now. Raises EngineUnreachable, EngineFailed."""
        filters = json.dumps({"label": [BUNDLES_LABEL]})
        path = f"/containers/json?all=true&filters={quote(filters)}"
        documents = self._parsed(_LIST, await self._ask("GET", path))
        ordered = sorted(
            (_container(container) for container in documents),
            key=lambda container: (container.service, container.id),
        )
        self._latest = (time.monotonic(), ordered)
        return ordered

    async def recent_containers(self) -> Sequence[Container]:
        """The same, at most a second old, for frequent requests by anybody."""
        async with self._turn:
            moment, containers = self._latest
            if time.monotonic() - moment < _FRESH_SECONDS:
                return containers
            return await self.containers()

    async def start(self, container: Container) -> bool:
        """Start it; returns whether that changed anything."""
        return await self._switch(container, "start")

    async def stop(self, container: Container) -> bool:
        """Stop it; returns whether that changed anything."""
        return await self._switch(container, "stop")

    async def last_lines(self, container: Container, count: int) -> list[ContainerLine]:
        """Its last lines, oldest first."""
        async with aclosing(self._lines(container, count, follow=False)) as lines:
            return [line async for line in lines][-count:]

    def follow(self, container: Container, count: int) -> AsyncGenerator[ContainerLine, None]:
        """Its last lines, then each as it is written, until the container ends."""
        return self._lines(container, count, follow=True)

    async def _lines(
        self, container: Container, count: int, *, follow: bool
    ) -> AsyncGenerator[ContainerLine, None]:
        details = self._parsed(_DETAILS, await self._ask("GET", f"/containers/{container.id}/json"))
        path = f"/containers/{container.id}/logs?stdout=true&stderr=true&tail={count}"
        path += "&follow=true" if follow else ""
        async with self._open("GET", path, None if follow else _SECONDS) as answer:
            self._check(answer.status, await _text_of(answer) if answer.status != 200 else b"")
            pieces = _bounded(answer, None if follow else _LARGEST_LOG)
            try:
                async for line in lines_of(pieces, multiplexed=not details.config.tty):
                    yield ContainerLine(line.stream, mask(line.text))
            except BrokenStream as error:
                raise EngineFailed(str(error)) from None

    async def _switch(self, container: Container, verb: str) -> bool:
        path = f"/containers/{container.id}/{verb}"
        async with self._open("POST", path, _STOP_SECONDS) as answer:
            body = await _text_of(answer)
            if answer.status != 304:
                self._check(answer.status, body, 204)
            return answer.status == 204

    async def _ask(self, method: str, path: str) -> bytes:
        async with self._open(method, path, _SECONDS) as answer:
            body = await _text_of(answer)
            self._check(answer.status, body)
            return body

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, seconds: float | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_SECONDS)
        try:
            async with self._session.request(
                method, self._base + path, timeout=timeout, allow_redirects=False
            ) as answer:
                yield answer
        except (aiohttp.ClientConnectionError, TimeoutError, OSError) as error:
            reason = "it does not answer in time" if isinstance(error, TimeoutError) else "no connection"
            raise EngineUnreachable(f"{EngineUnreachable.default_detail}: {reason}") from None
        except aiohttp.ClientError:
            raise EngineFailed() from None

    def _check(self, status: int, body: bytes, expected: int = 200) -> None:
        if status != expected:
            raise EngineFailed(f"The container engine answered {status}{_error_text(body)}")

    def _parsed(self, kind: TypeAdapter[Any], body: bytes) -> Any:
        try:
            return kind.validate_json(body)
        except ValidationError:
            raise EngineFailed() from None


ENGINE: ResourceKey[Engine | EngineUnusable | None] = ResourceKey("platform_ops.engine")


def engine_of(platform: Platform) -> Engine | None:
    """The configured engine; None if there is none. Raises EngineUnusable."""
    engine = platform.resource(ENGINE)
    if isinstance(engine, EngineUnusable):
        raise EngineUnusable(engine.detail)
    return engine


@asynccontextmanager
async def open_engine(platform: Platform) -> AsyncIterator[Engine | EngineUnusable | None]:
    """The engine at `DOCKER_HOST`, if that is set."""
    async with opened(platform.settings_of(OpsSettings).docker_host) as engine:
        yield engine


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Engine | EngineUnusable | None]:
    """The engine at this address; None without an address, the error for an unusable one.

    The variable is often set for other programs: a mistake in it must not keep backups from working.
    """
    if not address:
        yield None
        return
    scheme, _, rest = address.partition("://")
    base = _base(scheme, rest)
    if base is None:
        unusable = EngineUnusable()
        log.warning("bundles and container logs are not available: %s", unusable.detail)
        yield unusable
        return
    connector = aiohttp.UnixConnector(rest) if scheme == "unix" else aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
    ) as session:
        yield Engine(session, base)


def _base(scheme: str, rest: str) -> str | None:
    """The base of the engine's paths; None for an unusable address."""
    if scheme == "unix":
        usable = rest.strip("/") and rest.startswith("/") and len(os.fsencode(rest)) <= _LONGEST_SOCKET
        return "http://docker" if usable else None
    if scheme not in ("tcp", "http", "https"):
        return None
    try:
        url = URL(f"{'https' if scheme == 'https' else 'http'}://{rest.rstrip('/')}")
        return str(url).rstrip("/") if url.host else None  # the host is decoded here
    except ValueError:
        return None


def _container(listed: _Listed) -> Container:
    labels: Mapping[str, str] = listed.labels or {}
    name = (listed.names or [listed.id])[0].lstrip("/")
    bundles = [bundle.strip() for bundle in labels.get(BUNDLES_LABEL, "").split(",")]
    running = listed.state.lower() == "running"
    starting = any(word in listed.status for word in ("(unhealthy)", "(health: starting)", "(starting)"))
    return Container(
        id=listed.id,
        service=labels.get(_SERVICE_LABEL) or name,
        bundles=tuple(bundle for bundle in dict.fromkeys(bundles) if bundle),
        image=_pinned(listed.image),
        running=running,
        healthy=running and not starting,
    )


def _pinned(image: str) -> str | None:
    """The image, if it names a version; locally built images don't."""
    last = image.rpartition("/")[2]
    return image if ("@" in last or ":" in last) and not image.startswith("sha256:") else None


def _error_text(body: bytes) -> str:
    """The engine's error message, as the end of a sentence."""
    try:
        message = json.loads(body).get("message")
    except (ValueError, AttributeError):
        return ""
    return f": {mask(str(message))[:300]}" if message else ""


async def _text_of(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > _LARGEST_ANSWER:
            raise EngineFailed("The container engine sent too much")
    return bytes(body)


async def _bounded(answer: aiohttp.ClientResponse, most: int | None) -> AsyncIterator[bytes]:
    size = 0
    async for piece in answer.content.iter_any():
        size += len(piece)
        if most is not None and size > most:
            raise EngineFailed("The container engine sent too much; ask for fewer lines")
        yield piece
