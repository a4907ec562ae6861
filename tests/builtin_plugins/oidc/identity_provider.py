"""A certified OpenID provider on loopback, and the proxy in front of it that makes it misbehave.

The platform reaches the provider as behind a TLS proxy: its name is `ISSUER`, its address the proxy's.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from tests.fakes.npm import npm_folder

ISSUER = "https://idp.example.net"
PLATFORM = "https://platform.example.org"
CALLBACK = f"{PLATFORM}/v1/auth/oidc/callback"
BELOW = "/platform"
CLIENT_ID = "platform"
CLIENT_SECRET = "a secret: with %signs & spaces"
SIGNED_OUT = f"{PLATFORM}/goodbye"

_HERE = Path(__file__).parent / "provider"
_HOP_BY_HOP = frozenset({"connection", "content-length", "content-encoding", "transfer-encoding", "host"})

Key = RSAKey | ECKey | OctKey
Change = Callable[[dict[str, Any]], Any]


def signing_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


@dataclass
class ProviderProcess:
    """The provider and the key that it signs with."""

    url: str
    key: RSAKey


@contextmanager
def provider_process() -> Iterator[ProviderProcess]:
    """The provider, running. Skips where there is no node."""
    folder = npm_folder(_HERE, "the tests of single sign-on")
    key = signing_key("first")
    client = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "redirect_uris": [CALLBACK, f"{PLATFORM}{BELOW}/v1/auth/oidc/callback"],
        "post_logout_redirect_uris": [SIGNED_OUT],
        "backchannel_logout_uri": f"{PLATFORM}/v1/auth/oidc/backchannel-logout",
        "backchannel_logout_session_required": True,
    }
    config = {"issuer": ISSUER, "client": client, "jwks": {"keys": [key.as_dict(private=True)]}}
    process = subprocess.Popen(
        ["node", "provider.mjs"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PROVIDER_CONFIG": json.dumps(config)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        assert port, "the provider did not start"
        yield ProviderProcess(f"http://127.0.0.1:{port}", key)
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


@dataclass
class IdentityProvider:
    """What stands between the platform, the browser and the provider. Untouched, it changes nothing."""

    process: ProviderProcess
    url: str = ""
    calls: list[str] = field(default_factory=list)
    changes: dict[str, Change] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    hangs: set[str] = field(default_factory=set)
    claims: Change | None = None
    sign: Callable[[dict[str, Any]], str] | None = None
    session: aiohttp.ClientSession | None = None
    forms: list[dict[str, str]] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    secret: str = CLIENT_SECRET

    def behave(self) -> None:
        for changed in (self.calls, self.changes, self.statuses, self.redirects, self.hangs, self.forms):
            changed.clear()
        self.claims = self.sign = None

    async def knows(self, name: str, **claims: Any) -> None:
        """What the provider says about a person from now on."""
        await self._tell(name, json.dumps({"preferred_username": name, **claims}))

    async def delivers_to(self, url: str) -> None:
        """Where the platform listens, for what the provider itself sends it."""
        await self._tell("deliveries", url)

    async def _tell(self, what: str, body: str) -> None:
        assert self.session is not None
        async with self.session.put(f"{self.process.url}/_test/{what}", data=body) as answer:
            assert answer.status == 204

    def signed(self, claims: dict[str, Any], key: Key | None = None, **header: Any) -> str:
        """A token of these claims, signed as the provider would, or by another key."""
        key = key or self.process.key
        head = {"alg": "RS256", "kid": key.kid, **header}
        return jwt.encode(head, claims, key, algorithms=[head["alg"]])

    def logout_token(self, key: Key | None = None, **claims: Any) -> str:
        """A logout token of the provider; None leaves a claim out."""
        now = int(time.time())
        event = {"http://schemas.openid.net/event/backchannel-logout": {}}
        full = {"iss": ISSUER, "aud": CLIENT_ID, "iat": now, "exp": now + 120, "jti": os.urandom(8).hex()}
        full |= {"events": event, **claims}
        full = {name: value for name, value in full.items() if value is not None}
        return self.signed(full, key, typ="logout+jwt")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Pass on a request, changed where a test says so."""
        self.calls.append(request.path)
        self.called.set()
        if request.path == "/token":
            self.forms.append(dict(parse_qsl(await request.text())))
        if request.path in self.hangs:
            await self.released.wait()
        if request.path in self.redirects:
            return web.Response(status=307, headers={"Location": self.redirects[request.path]})
        status, headers, body = await self._forward(request)
        if request.path == "/token" and status == 200:
            body = self._tampered(body)
        if request.path in self.changes and status == 200:
            changed = self.changes[request.path](json.loads(body))
            body = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
        response = web.Response(status=self.statuses.get(request.path, status), body=body)
        response.headers.extend(headers)
        return response

    async def _forward(self, request: web.Request) -> tuple[int, list[tuple[str, str]], bytes]:
        assert self.session is not None
        public = urlsplit(ISSUER)
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        headers |= {"Host": public.netloc, "X-Forwarded-Proto": public.scheme}
        url = self.process.url + request.path_qs.removeprefix("/moved")
        async with self.session.request(
            request.method, url, headers=headers, data=await request.read(), allow_redirects=False
        ) as answer:
            end_to_end = [(k, v) for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP]
            return answer.status, end_to_end, await answer.read()

    def _tampered(self, body: bytes) -> bytes:
        """The token response, its ID token with other claims or another signature."""
        if self.claims is None and self.sign is None:
            return body
        answer = json.loads(body)
        claims = jwt.decode(answer["id_token"], self.process.key).claims
        claims = self.claims(claims) if self.claims is not None else claims
        answer["id_token"] = (self.sign or self.signed)(claims)
        return json.dumps(answer).encode()


@asynccontextmanager
async def in_front_of(process: ProviderProcess) -> AsyncIterator[IdentityProvider]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        idp = IdentityProvider(process, session=session)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", idp.handle)
        runner = web.AppRunner(app, shutdown_timeout=0, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        idp.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield idp
        idp.released.set()
        await runner.cleanup()
