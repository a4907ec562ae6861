"""The HTTP client of the command line: the stored session, and calls to the platform."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from cli.broken_rules import in_words
from cli.failures import CommandFailed, ExitCode

_LONGEST_WAIT = 60.0
_PATIENCE = 20
_RESTART = 6
"""How often to try a server that was there a moment ago: for a minute in all."""
_SIGN_IN = "Sign in with 'platformctl login URL'."


@dataclass
class Session:
    """A stored session: an account and the platform's address.

    `expires_at` is in seconds since 1970; None for a personal access token. The token is renewed when fewer
    than `renew_before` seconds are left: each account may do so only a few times a minute.
    """

    url: str
    token: str
    username: str
    expires_at: float | None = None
    renew_before: float = 600.0

    def keep(self, token: str, lifetime: float) -> None:
        """Use a new token, valid for `lifetime` seconds."""
        self.token, self.expires_at = token, time.time() + lifetime
        self.renew_before = min(600.0, lifetime / 2)

    @classmethod
    def load(cls, path: Path) -> Session | None:
        """The session of an earlier login, if there is one."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def save(self, path: Path) -> None:
        """Write the session atomically, readable only by its owner."""
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)


def session_file() -> Path:
    """The session's file."""
    from cli.running import kernel_settings

    return kernel_settings().home / "login.json"


def checked_url(url: str) -> str:
    """The address without path, query and fragment. Raises CommandFailed."""
    whole = url if "://" in url else f"http://{url}"
    if not _is_address(whole):
        raise CommandFailed(f"'{url}' is not a URL", "Write it as https://example.org.", code=ExitCode.USAGE)
    return whole.rstrip("/")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # unbalanced brackets or an invalid port
        return False
    blank = any(char.isspace() for char in url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and not blank


class SessionLost(CommandFailed):
    """The platform no longer accepts the session."""


class Client:
    """Calls the platform as the signed-in account and renews the token in time."""

    def __init__(self, http: aiohttp.ClientSession, session: Session, path: Path) -> None:
        self._http = http
        self._session = session
        self._path = path
        self._renewing = asyncio.Lock()
        self._has_answered = False
        self.tell_wait: Callable[[str, float], None] | None = None

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON that a GET returns. Raises CommandFailed."""
        return await self.call("GET", path, params=query)

    async def call(
        self, method: str, path: str, *, form: Callable[[], aiohttp.FormData] | None = None, **options: Any
    ) -> Any:
        """The JSON of a response; waits as long as the rate limit demands. Raises CommandFailed.

        `form` builds the form data of an upload for each attempt. Each wait is reported to `tell_wait`, if it
        is set: why, and the seconds. Then uploads and reads also wait for a platform that answered before
        and is gone: it may be restarting.
        """
        lost = 0
        for attempt in range(_PATIENCE):
            data: dict[str, Any] = {} if form is None else {"data": form()}
            try:
                async with self._request(method, path, **options, **data) as answer:
                    self._has_answered = True
                    if answer.status == 401 and attempt == 0 and await self._renewed(force=True):
                        continue
                    wait = _wait_of(answer)
                    if wait is None:
                        await refuse(answer, f"{method} {path}")
                        return await answer.json()
                    why = "Rate limit"
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
                safe = self._has_answered and (method == "GET" or form is not None)
                waits = safe and self.tell_wait is not None and lost < _RESTART
                if not waits or isinstance(error, TimeoutError):
                    raise
                why, wait = "No answer", 2.0**lost
                lost += 1
            if self.tell_wait is not None:
                self.tell_wait(why, wait)
            await asyncio.sleep(wait)
        raise CommandFailed(f"{method} {path}: the platform is busy", "Try again later.")

    @asynccontextmanager
    async def stream(self, path: str, body: dict[str, Any]) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
        """Server-sent events, by name and value. Raises CommandFailed."""
        headers = {"Accept": "text/event-stream"}
        async with self._request("POST", path, json=body, headers=headers) as answer:
            await refuse(answer, f"POST {path}")
            yield _events(answer)

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, headers: dict[str, str] | None = None, **options: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        await self._renewed(force=False)
        own = {"Authorization": f"Bearer {self._session.token}", **(headers or {})}
        async with self._http.request(method, self._session.url + path, headers=own, **options) as answer:
            yield answer

    async def _renewed(self, *, force: bool) -> bool:
        """Exchange a token that is about to expire or was refused. Returns whether there is a new one."""
        async with self._renewing:
            ends = self._session.expires_at
            if ends is None or (not force and ends - time.time() > self._session.renew_before):
                return False
            headers = {"Authorization": f"Bearer {self._session.token}"}
            url = f"{self._session.url}/v1/auth/refresh"
            async with self._http.post(url, headers=headers) as answer:
                if answer.status != 200:
                    return False
                fresh = await answer.json()
            self._session.keep(fresh["access_token"], fresh["expires_in"])
            await asyncio.to_thread(self._session.save, self._path)
            return True


def _wait_of(answer: aiohttp.ClientResponse) -> float | None:
    """Seconds to wait before asking again; None for a final response."""
    after = answer.headers.get("Retry-After")
    if answer.status not in (429, 503) or after is None:
        return None
    return min(_LONGEST_WAIT, float(after)) if after.isdecimal() else _LONGEST_WAIT  # a proxy may send a date


def no_answer(url: str, error: Exception, remedy: str) -> CommandFailed:
    """The error to show: no answer, a lost connection, or another kind of server."""
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.InvalidURL):
        return not_a_platform(url)
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
        return CommandFailed(f"{url} closed the connection", remedy)
    return CommandFailed(f"no platform answers at {url} ({type(error).__name__})", remedy)


def not_a_platform(url: str) -> CommandFailed:
    """The error to show if another kind of server answers."""
    return CommandFailed(
        f"what answers at {url} is not the platform's API",
        "Check the address: 'platformctl serve' shows it as 'API'.",
    )


async def refuse(answer: aiohttp.ClientResponse, what: str) -> None:
    """Raise CommandFailed for an error response, SignedOut for a session that has ended."""
    if answer.status < 400:
        return
    if answer.status == 401:
        raise SessionLost("you are not signed in, or your session has ended", _SIGN_IN)
    try:
        detail = (await answer.json())["detail"]
    except (aiohttp.ContentTypeError, ValueError, KeyError, TypeError):
        detail = answer.reason
    raise CommandFailed(f"{what} failed with status {answer.status}: {in_words(detail)}")


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    name, data = "", ""
    while raw := await answer.content.readline():
        line = raw.decode("utf-8").rstrip("\r\n")
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data += line.removeprefix("data: ")
        elif not line and data:
            yield name, json.loads(data)
            name, data = "", ""


@asynccontextmanager
async def signed_in() -> AsyncIterator[Client]:
    """The platform of the last login, or that of PLATFORM_API_URL and PLATFORM_API_TOKEN.

    Raises CommandFailed without either.
    """
    from cli.running import cli_settings

    settings, path = cli_settings(), session_file()
    if settings.api_token is not None:
        token = settings.api_token.get_secret_value()
        session: Session | None = Session(settings.api_url.rstrip("/"), token, "")
    else:
        session = await asyncio.to_thread(Session.load, path)
    if session is None:
        raise CommandFailed("you are not signed in", _SIGN_IN)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=330)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        try:
            yield Client(http, session, path)
        except (aiohttp.ClientError, TimeoutError) as error:
            remedy = "Start it and run this again, or sign in elsewhere with 'platformctl login URL'."
            raise no_answer(session.url, error, remedy) from None
