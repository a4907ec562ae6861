"""A credential that does not hold is refused on every kind of route; one that holds says who asks."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
import unittest.mock
from collections.abc import AsyncIterator, Callable
from typing import Any

import jwt
import pytest
import pytest_asyncio
from aiohttp.test_utils import make_mocked_request
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import update

from kernel.auth.models import Account
from kernel.errors import StartupError
from kernel.http.context import ClientAddresses
from kernel.sdk.accounts import TOKENS, revoke_sessions
from kernel.testing import Actor, Running, Start, platforms
from tests.fakes.echo import EchoPlugin
from tests.fakes.network import raw_client
from tests.fakes.rows import execute

SECRET = "a secret of at least thirty-two bytes, for tests"
ROUTES = [
    ("GET", "/v1/echo/open"),
    ("GET", "/v1/echo/private"),
    ("GET", "/health"),
    ("GET", "/livez"),
    ("GET", "/metrics"),
    ("GET", "/v1/status"),
    ("GET", "/v1/auth/capabilities"),
    ("POST", "/v1/auth/login"),
    ("POST", "/v1/auth/change-password"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/v1/nowhere"),
    ("DELETE", "/v1/echo/open"),
    ("GET", "/v1/tts"),
    ("POST", "/v1/tts/speak"),
    ("GET", "/v1/ai/models"),
    ("POST", "/v1/ai/chat/completions"),
    ("POST", "/webhook/anything"),
]

together = pytest.mark.asyncio(loop_scope="module")  # for tests that share one platform
Forge = Callable[[dict[str, Any]], str]


def encoded(part: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def with_header(claims: dict[str, Any], secret: Any = SECRET, **header: Any) -> str:
    """A token with these fields in its header, signed with `secret` as the header does not say."""
    signed = f"{encoded({'alg': 'HS256', 'typ': 'JWT', **header})}.{encoded(claims)}"
    key = secret if isinstance(secret, bytes) else secret.encode()
    signature = hmac.digest(key, signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


OWN_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC_PEM = OWN_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
OWN_JWK = {"kty": "oct", "k": base64.urlsafe_b64encode(b"x" * 32).rstrip(b"=").decode()}

FORGERIES: dict[str, Forge] = {
    "RS256 with a key of its own": lambda c: jwt.encode(c, OWN_KEY, "RS256"),
    "signed with a public key": lambda c: with_header(c, PUBLIC_PEM),
    "RS256 said, HS256 done": lambda c: with_header(c, alg="RS256"),
    "an algorithm in small letters": lambda c: with_header(c, alg="hs256"),
    "None in other letters": lambda c: f"{encoded({'alg': 'nOnE'})}.{encoded(c)}.",
    "no algorithm named": lambda c: with_header(c, alg=None),
    "an algorithm that is no text": lambda c: with_header(c, alg=["HS256"]),
    "a key of its own in the header": lambda c: with_header(c, b"x" * 32, jwk=OWN_JWK),
    "an address of keys": lambda c: with_header(c, b"x" * 32, jku="http://127.0.0.1:9/keys"),
    "a chain of certificates": lambda c: with_header(c, b"x" * 32, x5c=["AAAA"], x5u="http://127.0.0.1:9/"),
    "a key id that is a path": lambda c: with_header(c, b"", kid="/dev/null"),
    "a key id that is a statement": lambda c: with_header(c, b"x", kid="' UNION SELECT 'x"),
    "a key id that is no text": lambda c: with_header(c, kid={"a": 1}),
    "an unknown critical extension": lambda c: with_header(c, crit=["exp", "unknown"], unknown=1),
    "a payload that is not encoded": lambda c: with_header(c, b64=False, crit=["b64"]),
    "a token in a token": lambda c: with_header({"jwt": jwt.encode(c, SECRET, "HS256")}, cty="JWT"),
    "not before tomorrow": lambda c: jwt.encode({**c, "nbf": int(time.time()) + 86400}, SECRET, "HS256"),
    "an expiry before time began": lambda c: jwt.encode({**c, "exp": -1}, SECRET, "HS256"),
    "an expiry with a fraction": lambda c: jwt.encode({**c, "exp": time.time() + 60.5}, SECRET, "HS256"),
    "a service with an account": lambda c: jwt.encode({**c, "role": "service"}, SECRET, "HS256"),
    "a subject in a list": lambda c: with_header({**c, "sub": [c["sub"]]}),
    "a subject with blanks": lambda c: jwt.encode({**c, "sub": f" {c['sub']}"}, SECRET, "HS256"),
    "a negative subject": lambda c: jwt.encode({**c, "sub": "-1"}, SECRET, "HS256"),
    "no start": lambda c: jwt.encode({k: v for k, v in c.items() if k != "iat"}, SECRET, "HS256"),
    "a blank inside": lambda c: jwt.encode(c, SECRET, "HS256").replace(".", ". ", 1),
    "padding": lambda c: jwt.encode(c, SECRET, "HS256") + "==",
    "a fourth part": lambda c: jwt.encode(c, SECRET, "HS256") + ".e30",
    "expired": lambda c: jwt.encode({**c, "exp": int(time.time()) - 1}, SECRET, "HS256"),
    "wrongly signed": lambda c: jwt.encode(c, "another secret that is long enough, too", "HS256"),
    "alg none": lambda c: f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{encoded(c)}.",
    "another hash": lambda c: jwt.encode(c, SECRET.ljust(64), "HS512"),
    "same secret, another hash": lambda c: jwt.encode(c, SECRET, "HS384"),
    "not a token": lambda _: "garbage",
    "two parts": lambda c: ".".join(jwt.encode(c, SECRET, "HS256").split(".")[:2]),
    "empty": lambda _: "",
    "not ASCII": lambda _: "schlüssel",
    "too long": lambda c: jwt.encode({**c, "x": "y" * 9000}, SECRET, "HS256"),
    "no expiry": lambda c: jwt.encode({k: v for k, v in c.items() if k != "exp"}, SECRET, "HS256"),
    "no subject": lambda c: jwt.encode({k: v for k, v in c.items() if k != "sub"}, SECRET, "HS256"),
    "nobody's subject": lambda c: jwt.encode({**c, "sub": "999999"}, SECRET, "HS256"),
    "a subject past every id": lambda c: jwt.encode({**c, "sub": "9999999999"}, SECRET, "HS256"),
    "a subject that is no number": lambda c: jwt.encode({**c, "sub": "admin"}, SECRET, "HS256"),
    "a number as subject": lambda c: jwt.encode({**c, "sub": 1}, SECRET, "HS256"),
    "expiry as text": lambda c: jwt.encode({**c, "exp": "tomorrow"}, SECRET, "HS256"),
    "endless expiry": lambda c: jwt.encode({**c, "exp": 10**400}, SECRET, "HS256"),
    "issued tomorrow": lambda c: jwt.encode({**c, "iat": int(time.time()) + 86400}, SECRET, "HS256"),
    "a lower epoch": lambda c: jwt.encode({**c, "epoch": -1}, SECRET, "HS256"),
    "a higher epoch": lambda c: jwt.encode({**c, "epoch": 7}, SECRET, "HS256"),
    "an epoch that is no number": lambda c: jwt.encode({**c, "epoch": False}, SECRET, "HS256"),
    "issued at no number": lambda c: jwt.encode({**c, "iat": True}, SECRET, "HS256"),
    "teams that are no list": lambda c: jwt.encode({**c, "teams": 5}, SECRET, "HS256"),
    "teams by name": lambda c: jwt.encode({**c, "teams": "blue"}, SECRET, "HS256"),
    "a team in a list of its own": lambda c: jwt.encode({**c, "teams": [[1]]}, SECRET, "HS256"),
    "a team past every id": lambda c: jwt.encode({**c, "teams": [2**70]}, SECRET, "HS256"),
    "organizations that are no list": lambda c: jwt.encode({**c, "orgs": 7}, SECRET, "HS256"),
    "an organization past every id": lambda c: jwt.encode({**c, "orgs": [{"id": 2**70}]}, SECRET, "HS256"),
    "a service without its prefix": lambda c: jwt.encode({**c, "role": "service"}, SECRET, "HS256"),
    "an array as claims": lambda _: f"{encoded({'alg': 'HS256'})}.{encoded([1])}.AAAA",
    "a deep header": lambda _: f"{base64.urlsafe_b64encode(b'[' * 3000).decode()}.e30.AAAA",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """One platform for all tests that leave it as it was."""
    async with platforms(tmp_path_factory.mktemp("shared")) as start:
        yield await start(EchoPlugin, env={"JWT_SECRET": SECRET})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ana(shared: Running) -> Actor:
    return await shared.user("ana")


@pytest.mark.parametrize("forgery", FORGERIES)
@together
async def test_forged_bearers(shared: Running, ana: Actor, forgery: str) -> None:
    """A bearer that does not hold is 401 everywhere: on open routes, unknown paths and forwarded prefixes."""
    claims = jwt.decode(ana.token or "", options={"verify_signature": False})
    mallory = Actor(shared)
    headers = {"Authorization": f"Bearer {FORGERIES[forgery](claims)}"}
    answers = {route: (await mallory.request(*route, headers=headers)).status for route in ROUTES}
    assert {route: status for route, status in answers.items() if status != 401} == {}


@together
async def test_a_token_in_the_query(shared: Running, ana: Actor) -> None:
    """A token anywhere but in the header is not looked at: who sends it stays a stranger."""
    for name in ("token", "access_token", "jwt", "authorization"):
        query = {name: ana.token or ""}
        answer = await shared.anonymous.get("/v1/echo/open", params=query)
        assert (answer.status, answer.json()["kind"]) == (200, "anonymous")
        assert (await shared.anonymous.get("/v1/echo/private", params=query)).status == 401
    cookie = {"Cookie": f"token={ana.token}; Authorization=Bearer {ana.token}"}
    assert (await shared.anonymous.get("/v1/echo/private", headers=cookie)).status == 401


@together
async def test_a_token_of_an_earlier_deployment(shared: Running) -> None:
    """One without `epoch` belongs to epoch 0: it holds until the first revocation, and never again."""
    old = await shared.user("old")
    claims = jwt.decode(old.token or "", options={"verify_signature": False})
    kept = ("sub", "username", "email", "role", "iat", "exp")
    token = jwt.encode({name: claims[name] for name in kept}, SECRET, "HS256")
    assert (await Actor(shared, token).get("/v1/echo/private")).status == 200
    await shared.platform.database.write(lambda unit: revoke_sessions(unit, old.user["id"]))
    assert (await Actor(shared, token).get("/v1/echo/private")).status == 401
    assert (await Actor(shared, token).post("/v1/auth/refresh")).status == 401


async def test_a_secret_that_is_replaced(start_platform: Start) -> None:
    """A token of the previous secret is verified while that is configured; none is minted with it."""
    first = await start_platform(EchoPlugin, env={"JWT_SECRET": SECRET})
    ana = await first.user("ana")
    env = {"JWT_SECRET": "another secret that is long enough, too"}
    rotated = await start_platform(EchoPlugin, env={**env, "JWT_PREVIOUS_SECRET": SECRET})
    assert (await Actor(rotated, ana.token).get("/v1/echo/private")).status == 200
    fresh = (await Actor(rotated, ana.token).post("/v1/auth/refresh")).json()["access_token"]
    assert jwt.decode(fresh, env["JWT_SECRET"], ["HS256"])["sub"] == str(ana.user["id"])
    over = await start_platform(EchoPlugin, env=env)
    assert (await Actor(over, ana.token).get("/v1/echo/private")).status == 401
    assert (await Actor(over, fresh).get("/v1/echo/private")).status == 200


@pytest.mark.parametrize("forgery", FORGERIES)
@together
async def test_nothing_forged_is_refreshed(shared: Running, ana: Actor, forgery: str) -> None:
    """Nor is one that does not hold traded for one that does; but for those that have merely expired."""
    claims = jwt.decode(ana.token or "", options={"verify_signature": False})
    answer = await Actor(shared, FORGERIES[forgery](claims)).post("/v1/auth/refresh")
    assert answer.status == (200 if forgery == "expired" else 401)


@pytest.mark.parametrize(
    "header", ["Basic dXNlcjpwYXNz", "Token abc", "Bearer", "Bearer ", "bearer", "", "Digest x", "Bearer a b"]
)
@together
async def test_other_schemes(shared: Running, header: str) -> None:
    """An Authorization header that is no bearer token is 401 as well, also on open routes."""
    for path in ("/v1/echo/open", "/v1/nowhere", "/v1/tts", "/health"):
        answer = await shared.anonymous.get(path, headers={"Authorization": header})
        assert answer.status == 401, path
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert answer.json()["code"] == "unauthorized"


@pytest.mark.parametrize(("method", "path"), ROUTES)
@together
async def test_two_headers(shared: Running, ana: Actor, method: str, path: str) -> None:
    """Two Authorization headers are 400 on every route, even when both hold."""
    value = f"Bearer {ana.token}"
    headers = [("Authorization", value), ("Authorization", value)]
    async with shared.session.request(method, shared.url + path, headers=headers) as answer:
        assert answer.status == 400
        assert (await answer.json())["code"] == "bad_request"


@together
async def test_refresh_answers_two_headers_alike(shared: Running) -> None:
    """The one route that judges its credential itself refuses two of them as well."""
    headers = [("Authorization", "Bearer a"), ("Authorization", "Bearer b")]
    async with shared.session.post(shared.url + "/v1/auth/refresh", headers=headers) as answer:
        assert answer.status == 400


@together
async def test_the_scheme_is_case_insensitive(shared: Running, ana: Actor) -> None:
    answer = await shared.anonymous.get("/v1/echo/open", headers={"Authorization": f"bEARER  {ana.token}"})
    assert answer.json()["subject"] == str(ana.user["id"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def actors(shared: Running, ana: Actor) -> list[Actor]:
    """Nobody, a user, an administrator, a Platform Admin, a service."""
    pat = await shared.user("pat")
    change = update(Account).where(Account.username == "pat").values(platform_admin=True)
    await execute(shared.platform.database, change)
    await shared.user(role="admin")  # the first administrator to sign in becomes a Platform Admin
    service = Actor(shared, shared.platform.resource(TOKENS).mint_service("indexer", 1))
    return [shared.anonymous, ana, await shared.user(role="admin"), pat, service]


@pytest.mark.parametrize(
    ("path", "statuses"),
    [
        ("/v1/echo/open", [200, 200, 200, 200, 200]),
        ("/v1/echo/private", [401, 200, 200, 200, 200]),
        ("/v1/echo/admin", [401, 403, 200, 403, 403]),
        ("/v1/echo/platform-admin", [401, 403, 403, 200, 403]),
        ("/v1/echo/service", [401, 403, 200, 403, 200]),
        ("/v1/echo/permitted", [401, 200, 200, 200, 200]),
        ("/v1/echo/withheld", [401, 403, 403, 403, 403]),
    ],
)
@together
async def test_who_may(actors: list[Actor], path: str, statuses: list[int]) -> None:
    """Each kind of access lets in whom it names: 401 without a token, 403 with one that is not enough."""
    assert [(await actor.get(path)).status for actor in actors] == statuses


@together
async def test_a_role_in_the_token_grants_nothing(shared: Running, ana: Actor) -> None:
    """The role and the Platform Admin flag come from the account, never from the claims."""
    claims = jwt.decode(ana.token or "", options={"verify_signature": False})
    token = jwt.encode({**claims, "role": "admin", "platform_admin": True}, SECRET, "HS256")
    for path in ("/v1/echo/admin", "/v1/echo/platform-admin"):
        assert (await Actor(shared, token).get(path)).status == 403


@together
async def test_a_deactivated_account(shared: Running) -> None:
    """A token of a deactivated account is refused at once, on open routes too."""
    bob = await shared.user("bob")
    assert (await bob.get("/v1/echo/open")).status == 200
    await execute(
        shared.platform.database,
        update(Account).where(Account.username == "bob").values(is_active=False),
        tell=("account", str(bob.user["id"])),
    )
    assert (await bob.get("/v1/echo/open")).status == 401
    assert (await bob.get("/v1/nowhere")).status == 401


@pytest.mark.parametrize("subject", ["2147483648", "9999999999", "99999999999", "١٢"])
async def test_subjects_past_every_id(start_platform: Start, database_url: str | None, subject: str) -> None:
    """A signed token whose subject no account can have is refused on every database, at refresh as well."""
    running = await start_platform(env={"JWT_SECRET": SECRET, "DATABASE_URL": database_url})
    now = int(time.time())
    token = jwt.encode({"sub": subject, "iat": now, "exp": now + 60, "epoch": 0}, SECRET, "HS256")
    assert (await Actor(running, token).get("/v1/auth/capabilities")).status == 401
    assert (await Actor(running, token).post("/v1/auth/refresh")).status == 401


async def test_a_trailer_lends_nothing_to_the_next_request(start_platform: Start) -> None:
    """Trailers of a chunked body don't leak into the connection's next request."""
    running = await start_platform(EchoPlugin)
    ann = await running.user("ann")
    body = f"2\r\n{{}}\r\n0\r\nAuthorization: Bearer {ann.token}\r\n\r\n"
    async with raw_client(running.url) as client:
        head = "POST /v1/echo/body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        await client.send(f"{head}{body}GET /v1/echo/private HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (await client.answer()).headers["connection"] == "close"
        assert await client.closed()


PROXIED = {"SERVICE_SYNC_TOKEN": "t0p-s3cret-of-thirty-two-characters", "TRUSTED_PROXY_CIDRS": "127.0.0.0/8"}


class TestServiceHeader:
    async def test_behind_a_proxy(self, start_platform: Start) -> None:
        """`X-Service-Token` makes a caller behind a configured proxy a service; a wrong one is 401."""
        running = await start_platform(EchoPlugin, env=PROXIED)
        answer = await running.anonymous.get(
            "/v1/echo/service", headers={"X-Service-Token": "t0p-s3cret-of-thirty-two-characters"}
        )
        assert (answer.status, answer.json()["kind"]) == (200, "service")
        for wrong in ("t0ps3cre", "t0p-s3cret-of-thirty-two-characterst", "über"):
            answer = await running.anonymous.get("/v1/echo/open", headers={"X-Service-Token": wrong})
            assert answer.status == 401

    async def test_bytes_that_are_no_text(self, start_platform: Start) -> None:
        """Bytes outside UTF-8 in a credential are a wrong one, not an internal error."""
        running = await start_platform(EchoPlugin, env=PROXIED)
        assert await _raw_status(running, b"X-Service-Token: \xff\xfe") == 401
        assert await _raw_status(running, b"Authorization: Bearer \xff\xfe") == 401

    async def test_off_without_a_setting(self, start_platform: Start) -> None:
        running = await start_platform(EchoPlugin, env={"TRUSTED_PROXY_CIDRS": "127.0.0.0/8"})
        for sent in ("", "x"):
            answer = await running.anonymous.get("/v1/echo/open", headers={"X-Service-Token": sent})
            assert answer.json()["kind"] == "anonymous"

    async def test_short_tokens_are_refused(self, start_platform: Start) -> None:
        """One that can be guessed is refused at the start, by its name; an empty one is none."""
        with pytest.raises(StartupError, match="SERVICE_SYNC_TOKEN"):
            await start_platform(env={"SERVICE_SYNC_TOKEN": "abc"})
        running = await start_platform(EchoPlugin, env={"SERVICE_SYNC_TOKEN": ""})
        answer = await running.anonymous.get("/v1/echo/open", headers={"X-Service-Token": ""})
        assert answer.json()["kind"] == "anonymous"

    async def test_guesses(self, start_platform: Start) -> None:
        """After too many wrong ones, of whatever kind and at whatever speed, none from that address is
        compared, not even a right one; who is signed in already goes on.
        """
        env = {**PROXIED, "RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_PER_MINUTE": "9"}
        running = await start_platform(EchoPlugin, env=env)
        ana = await running.user()
        assert (await ana.get("/v1/echo/open")).status == 200
        right = {"X-Service-Token": PROXIED["SERVICE_SYNC_TOKEN"]}
        far = {"X-Forwarded-For": "198.51.100.7"}

        async def guess(at: int) -> int:
            wrong = {"X-Service-Token": f"wrong {at}"} if at % 2 else {"Authorization": f"Bearer wrong.{at}"}
            return (await running.anonymous.get("/v1/echo/open", headers={**wrong, **far})).status

        statuses = await asyncio.gather(*map(guess, range(40)))
        assert set(statuses) == {401, 429} and statuses.count(401) <= 9
        answer = await running.anonymous.get("/v1/echo/service", headers={**right, **far})
        assert (answer.status, answer.json()["code"]) == (429, "rate_limit_per_minute")
        assert (await ana.get("/v1/echo/open", headers=far)).status == 200
        assert (await running.anonymous.get("/v1/echo/service", headers=right)).status == 200

    async def test_right_ones_are_not_counted(self, start_platform: Start) -> None:
        """A service may ask as often as its own limit allows."""
        env = {**PROXIED, "RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_PER_MINUTE": "9"}
        running = await start_platform(EchoPlugin, env=env)
        right = {"X-Service-Token": PROXIED["SERVICE_SYNC_TOKEN"]}
        for _ in range(30):
            assert (await running.anonymous.get("/v1/echo/service", headers=right)).status == 200

    @pytest.mark.parametrize(
        ("peer", "proxies", "near"),
        [
            ("127.0.0.1", "", True),
            ("::1", "", True),
            ("192.0.2.7", "", False),
            ("192.0.2.7", "192.0.2.0/24", True),
            ("198.51.100.7", "192.0.2.0/24", False),
            ("", "", False),
        ],
    )
    def test_from_another_machine(self, peer: str, proxies: str, near: bool) -> None:
        """From another machine the header is believed only through a proxy that the operator named."""
        transport = unittest.mock.Mock()
        transport.get_extra_info.side_effect = {"peername": (peer, 1), "sslcontext": None}.get
        request = make_mocked_request("GET", "/", transport=transport)
        assert ClientAddresses(proxies).is_near(request) is near
        forwarded = {"X-Forwarded-For": "198.51.100.7"}
        request = make_mocked_request("GET", "/", headers=forwarded, transport=transport)
        assert ClientAddresses(proxies).is_near(request) is (near and bool(proxies))


async def _raw_status(running: Running, header: bytes) -> int:
    host, _, port = running.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /v1/echo/open HTTP/1.1\r\nHost: x\r\n" + header + b"\r\nConnection: close\r\n\r\n")
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])
