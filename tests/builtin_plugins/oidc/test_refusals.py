"""Whatever is wrong with the provider, its tokens or the way back: a clear refusal, and no account."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt
from joserfc.jwe import JWERegistry
from joserfc.jwk import OctKey

from tests.builtin_plugins.oidc.browser import Browser, Page
from tests.builtin_plugins.oidc.identity_provider import (
    CALLBACK,
    CLIENT_ID,
    CLIENT_SECRET,
    ISSUER,
    IdentityProvider,
    signing_key,
)
from tests.builtin_plugins.oidc.sso_support import FLOW, LOGIN, Boot, Site, compact, together

CLIENT = "https://client.example.org/auth/callback"
EVIL = "https://evil.example"
DISCOVERY = "/.well-known/openid-configuration"

Quirk = Callable[[IdentityProvider], None]


def claims(**changed: Any) -> Quirk:
    """An ID token with other claims, rightly signed; None takes one away."""

    def apply(idp: IdentityProvider) -> None:
        idp.claims = lambda originals: {k: v for k, v in {**originals, **changed}.items() if v is not None}

    return apply


def answer(path: str, change: Callable[[dict[str, Any]], Any]) -> Quirk:
    return lambda idp: idp.changes.update({path: change})


def without(path: str, *names: str) -> Quirk:
    return answer(path, lambda document: {k: v for k, v in document.items() if k not in names})


def elsewhere(path: str) -> Quirk:
    return lambda idp: idp.redirects.update({path: f"{idp.url}/moved{path}"})


def padded(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode() + b" " * 2_000_000


def signed(sign: Callable[[IdentityProvider, dict[str, Any]], str]) -> Quirk:
    def apply(idp: IdentityProvider) -> None:
        idp.sign = lambda id_claims: sign(idp, id_claims)

    return apply


def unsigned(_idp: IdentityProvider, id_claims: dict[str, Any]) -> str:
    return compact({"alg": "none", "kid": "first"}, id_claims, lambda _content: b"")


def by_shared_secret(_idp: IdentityProvider, id_claims: dict[str, Any]) -> str:
    secret = CLIENT_SECRET.encode()
    return compact({"alg": "HS256", "kid": "first"}, id_claims, lambda c: hmac.digest(secret, c, "sha256"))


def by_public_key(idp: IdentityProvider, id_claims: dict[str, Any]) -> str:
    """HS256 with the published key as the secret: the confusion of RFC 8725 section 2.1."""
    secret = idp.process.key.as_pem(private=False)
    return compact({"alg": "HS256", "kid": "first"}, id_claims, lambda c: hmac.digest(secret, c, "sha256"))


def by_attacker(idp: IdentityProvider, id_claims: dict[str, Any]) -> str:
    """Another key under the name of the right one."""
    return idp.signed(id_claims, signing_key("first"))


def by_embedded_key(idp: IdentityProvider, id_claims: dict[str, Any]) -> str:
    key = signing_key("first")
    return idp.signed(id_claims, key, jwk=key.as_dict(private=False))


def with_critical_header(idp: IdentityProvider, id_claims: dict[str, Any]) -> str:
    """An extension that must be understood, and is not; else all is right."""
    key: Any = idp.process.key.private_key
    header = {"alg": "RS256", "kid": "first", "crit": ["policy"], "policy": "x"}
    return compact(header, id_claims, lambda content: key.sign(content, PKCS1v15(), SHA256()))


def now(seconds: int) -> int:
    return int(time.time()) + seconds


async def refused(site: Site, error: str, person: str = "anna") -> Page:
    """A sign-in ends on the login page with this error, without token and account."""
    before = await site.accounts()
    assert person not in before
    page = await site.visit(person)
    assert page.url.startswith(f"{CLIENT}#error="), page
    assert page.fragment["error"] == error
    assert len(page.fragment["error_description"]) > 20
    assert "token" not in page.fragment
    assert page.headers["Cache-Control"] == "no-store"
    assert await site.accounts() == before
    return page


TOKEN_QUIRKS: dict[str, tuple[Quirk, str]] = {
    "wrong issuer": (claims(iss=EVIL), "sso_bad_id_token"),
    "no issuer": (claims(iss=None), "sso_bad_id_token"),
    "wrong audience": (claims(aud="another client"), "sso_bad_id_token"),
    "no audience": (claims(aud=None), "sso_bad_id_token"),
    "audience of another kind": (claims(aud={"platform": True}), "sso_bad_id_token"),
    "two audiences, no azp": (claims(aud=[CLIENT_ID, "another client"]), "sso_bad_id_token"),
    "azp of another": (claims(azp="another client"), "sso_bad_id_token"),
    "wrong nonce": (claims(nonce="another sign-in"), "sso_bad_id_token"),
    "no nonce": (claims(nonce=None), "sso_bad_id_token"),
    "nonce of another kind": (claims(nonce=True), "sso_bad_id_token"),
    "expired": (claims(iat=now(-7200), exp=now(-3600)), "sso_bad_id_token"),
    "no expiry": (claims(exp=None), "sso_bad_id_token"),
    "expiry as text": (claims(exp="tomorrow"), "sso_bad_id_token"),
    "from the future": (claims(iat=now(3600), exp=now(7200)), "sso_bad_id_token"),
    "no time of issue": (claims(iat=None), "sso_bad_id_token"),
    "wrong at_hash": (claims(at_hash="AAAAAAAAAAAAAAAAAAAAAA"), "sso_bad_id_token"),
    "no subject": (claims(sub=None), "sso_provider_fault"),
    "empty subject": (claims(sub=""), "sso_provider_fault"),
    "subject of another kind": (claims(sub=7), "sso_bad_id_token"),
    "subject with NUL": (claims(sub="anna\x00"), "sso_bad_id_token"),
    "endless subject": (claims(sub="a" * 300), "sso_bad_id_token"),
    "unsigned": (signed(unsigned), "sso_bad_id_token"),
    "signed by shared secret": (signed(by_shared_secret), "sso_bad_id_token"),
    "signed by public key": (signed(by_public_key), "sso_bad_id_token"),
    "signed by an attacker": (signed(by_attacker), "sso_bad_id_token"),
    "brings its key": (signed(by_embedded_key), "sso_bad_id_token"),
    "critical header": (signed(with_critical_header), "sso_bad_id_token"),
    "unknown key": (signed(lambda idp, said: idp.signed(said, signing_key("second"))), "sso_unknown_key"),
    "no token at all": (signed(lambda idp, said: "not.a.token"), "sso_bad_id_token"),
    "huge": (claims(filler="x" * 40_000), "sso_bad_id_token"),
}


async def test_at_hash_that_is_demanded(boot: Boot) -> None:
    """It may be missing, unless the operator says that this provider sends it."""
    site = await boot(PLATFORM_OIDC_REQUIRE_AT_HASH="true")
    await site.idp.knows("anna")
    page = await refused(site, "sso_bad_id_token")
    assert "at_hash" in page.fragment["error_description"]


PROVIDER_QUIRKS: dict[str, tuple[Quirk, str]] = {
    "discovery of another issuer": (answer(DISCOVERY, lambda d: {**d, "issuer": EVIL}), "sso_provider_fault"),
    "discovery without token_endpoint": (without(DISCOVERY, "token_endpoint"), "sso_provider_fault"),
    "discovery without jwks_uri": (without(DISCOVERY, "jwks_uri"), "sso_provider_fault"),
    "discovery to a file": (
        answer(DISCOVERY, lambda d: {**d, "jwks_uri": "file:///k"}),
        "sso_provider_fault",
    ),
    "discovery to http": (
        answer(DISCOVERY, lambda d: {**d, "token_endpoint": "http://idp.example.net/token"}),
        "sso_provider_fault",
    ),
    "discovery is no JSON": (answer(DISCOVERY, lambda d: b"<html>"), "sso_provider_fault"),
    "discovery is a list": (answer(DISCOVERY, lambda d: [d]), "sso_provider_fault"),
    "discovery without end": (answer(DISCOVERY, padded), "sso_provider_fault"),
    "discovery is gone": (lambda idp: idp.statuses.update({DISCOVERY: 404}), "sso_provider_fault"),
    "discovery redirects": (elsewhere(DISCOVERY), "sso_provider_fault"),
    "exchange redirects": (elsewhere("/token"), "sso_provider_fault"),
    "exchange refused": (lambda idp: idp.statuses.update({"/token": 400}), "sso_provider_fault"),
    "exchange breaks": (lambda idp: idp.statuses.update({"/token": 500}), "sso_provider_fault"),
    "no access token": (without("/token", "access_token"), "sso_provider_fault"),
    "no ID token": (without("/token", "id_token"), "sso_provider_fault"),
    "access token with line breaks": (
        answer("/token", lambda t: {**t, "access_token": "a\r\nX-Evil: 1"}),
        "sso_provider_fault",
    ),
    "keys are gone": (lambda idp: idp.statuses.update({"/jwks": 500}), "sso_provider_fault"),
    "no list of keys": (answer("/jwks", lambda keys: {"keys": "none"}), "sso_provider_fault"),
    "no keys": (answer("/jwks", lambda keys: {"keys": []}), "sso_unknown_key"),
    "broken keys": (
        answer("/jwks", lambda keys: {"keys": [7, {"kty": "RSA", "kid": "first"}]}),
        "sso_unknown_key",
    ),
    "keys without end": (answer("/jwks", lambda keys: {"keys": keys["keys"] * 1000}), "sso_provider_fault"),
    "userinfo of another": (answer("/me", lambda said: {**said, "sub": "bert"}), "sso_bad_id_token"),
    "userinfo of nobody": (without("/me", "sub"), "sso_bad_id_token"),
}


@together
@pytest.mark.parametrize("name", [*TOKEN_QUIRKS, *PROVIDER_QUIRKS])
async def test_wrong_answers_of_the_provider(shared: Site, name: str) -> None:
    quirk, error = {**TOKEN_QUIRKS, **PROVIDER_QUIRKS}[name]
    await shared.idp.knows("anna", email="anna@corp.example", groups=["admins"])
    quirk(shared.idp)
    await refused(shared, error)


@pytest.mark.parametrize("path", [DISCOVERY, "/token", "/jwks"])
async def test_slow_provider(boot: Boot, path: str) -> None:
    """The time of each call is bounded, and the login page hears of it."""
    site = await boot(PLATFORM_OIDC_TIMEOUT="0.3")
    await site.idp.knows("anna")
    site.idp.hangs.add(path)
    await refused(site, "sso_provider_fault")


async def test_slow_userinfo(boot: Boot) -> None:
    """Userinfo is worth waiting for, but not forever: the sign-in continues without it."""
    site = await boot(PLATFORM_OIDC_TIMEOUT="0.3")
    await site.idp.knows("anna")
    site.idp.hangs.add("/me")
    assert "token" in (await site.visit("anna")).fragment


async def test_dead_provider(boot: Boot) -> None:
    """Nobody listens: a clear failure, for a browser and for others; local accounts go on."""
    site = await boot(PLATFORM_OIDC_INTERNAL_URL="http://127.0.0.1:9")
    await refused(site, "sso_provider_fault")
    plain = await site.running.anonymous.get("/v1/auth/oidc/login", allow_redirects=False)
    assert (plain.status, plain.json()["code"]) == (502, "sso_provider_fault")
    assert "127.0.0.1" not in plain.detail
    await site.running.user("local")


async def test_provider_that_recovers(site: Site) -> None:
    await site.idp.knows("anna")
    site.idp.statuses[DISCOVERY] = 500
    await refused(site, "sso_provider_fault")
    site.idp.statuses.clear()
    await site.sign_in("anna")


def flow_of(back: Page) -> str:
    """The name of the cookie of the sign-in that a callback ends."""
    return f"{FLOW}{back.query['state']}"


async def halfway(site: Site) -> tuple[Browser, Page]:
    """A browser of somebody new that the provider just sent back; the callback is not requested yet."""
    person = f"person-{secrets.token_hex(4)}"
    await site.idp.knows(person)
    browser = site.browser(person)
    return browser, await browser.go(LOGIN, until=CALLBACK)


async def bounced(site: Site, browser: Browser, url: str, error: str = "sso_bad_callback") -> Page:
    """The callback ends on the login page, the provider saw no code, and nobody got an account."""
    calls, accounts = len(site.idp.calls), await site.accounts()
    page = await browser.go(url)
    assert page.fragment.get("error") == error, page
    assert "/token" not in site.idp.calls[calls:]
    assert await site.accounts() == accounts
    return page


@together
class TestCallback:
    async def test_without_a_beginning(self, shared: Site) -> None:
        _, back = await halfway(shared)
        await bounced(shared, shared.browser("anna"), back.url)

    async def test_with_cookies_of_another_sign_in(self, shared: Site) -> None:
        """The code and state of one browser do not work in another that has begun as well."""
        _, back = await halfway(shared)
        victim, _ = await halfway(shared)
        await bounced(shared, victim, back.url)

    async def test_with_a_swapped_cookie(self, shared: Site) -> None:
        """State, nonce and verifier belong together: under one's own state, another's are of no use."""
        browser, back = await halfway(shared)
        other, foreign = await halfway(shared)
        sealed = other.cookie(flow_of(foreign), CALLBACK) or ""
        assert sealed
        browser.plant(flow_of(back), sealed, CALLBACK)
        await bounced(shared, browser, back.url)

    @pytest.mark.parametrize("value", ["", "x", "ünï", "a.b.c.d.e", "x" * 3000])
    async def test_with_a_broken_cookie(self, shared: Site, value: str) -> None:
        """What can't be read is refused like what is not there."""
        browser, back = await halfway(shared)
        browser.plant(flow_of(back), value, CALLBACK)
        await bounced(shared, browser, back.url)

    async def test_with_cookies_of_impossible_names(self, shared: Site) -> None:
        """A name that no server can set, and so none can delete, is no reason to fail."""
        sent = {"Accept": "text/html", "Cookie": "; ".join(f"{FLOW}[{n}]=x" for n in range(9))}
        for path in ("login", "callback?state=[1]"):
            where = f"/v1/auth/oidc/{path}"
            reply = await shared.running.anonymous.get(where, headers=sent, allow_redirects=False)
            assert reply.status == 302, reply.body

    async def test_that_is_not_ours_leaves_ours_alone(self, shared: Site) -> None:
        """A foreign callback, forced on a browser that is signing in, does not spoil the sign-in."""
        browser, back = await halfway(shared)
        await bounced(shared, browser, f"{CALLBACK}?state=foreign&code=x")
        assert "token" in (await browser.go(back.url)).fragment

    async def test_too_late(self, shared: Site) -> None:
        """Five minutes count here, not only in the browser: a cookie that was kept is of no use."""
        browser, back = await halfway(shared)
        secret = shared.running.platform.secrets.ensure("oidc-cookie")
        key = OctKey.import_key(hashlib.sha256(secret.encode()).digest())
        registry = JWERegistry(algorithms=["dir", "A256GCM"])
        sealed = jwt.decode(browser.cookie(flow_of(back), CALLBACK) or "", key, registry=registry)
        header = {"alg": "dir", "enc": "A256GCM"}
        for left, works in ((-1, False), (60, True)):
            kept = jwt.encode(header, {**sealed.claims, "exp": now(left)}, key, registry=registry)
            browser.plant(flow_of(back), kept, CALLBACK)
            assert ("token" in (await browser.go(back.url)).fragment) is works

    async def test_replayed(self, shared: Site) -> None:
        """A callback works once, even for who kept the cookies."""
        browser, back = await halfway(shared)
        sealed = browser.cookie(flow_of(back), CALLBACK) or ""
        assert "token" in (await browser.go(back.url)).fragment
        browser.plant(flow_of(back), sealed, CALLBACK)
        await bounced(shared, browser, back.url)

    async def test_replayed_after_a_failure(self, shared: Site) -> None:
        shared.idp.statuses["/token"] = 500
        browser, back = await halfway(shared)
        cookies = ("oidc_state", "oidc_nonce", flow_of(back))
        sealed = browser.cookie(flow_of(back), CALLBACK) or ""
        await browser.go(back.url)
        assert not any(browser.cookie(name, CALLBACK) for name in cookies)
        browser.plant(flow_of(back), sealed, CALLBACK)
        await bounced(shared, browser, back.url)

    async def test_without_code(self, shared: Site) -> None:
        browser, back = await halfway(shared)
        state = back.query["state"]
        await bounced(shared, browser, f"{CALLBACK}?state={state}&iss={ISSUER}")

    async def test_code_of_somebody_else(self, shared: Site) -> None:
        """A stolen code in one's own sign-in fails at the provider: PKCE binds it to the browser."""
        _, stolen = await halfway(shared)
        thief, back = await halfway(shared)
        url = back.url.replace(back.query["code"], stolen.query["code"])
        before = await shared.accounts()
        assert (await thief.go(url)).fragment["error"] == "sso_provider_fault"
        assert await shared.accounts() == before

    async def test_provider_refuses(self, shared: Site) -> None:
        """The login page has the provider's code, but not its text, which comes through the browser."""
        page = await refused(shared, "sso_refused", person="")
        assert page.fragment["error_description"].endswith("(access_denied)")

    async def test_error_of_a_stranger(self, shared: Site) -> None:
        """An error without the state of this browser shows nothing of its text."""
        browser, _ = await halfway(shared)
        page = await bounced(shared, browser, f"{CALLBACK}?error=x&error_description=Call+555&state=foreign")
        assert "555" not in page.url

    async def test_mix_up(self, shared: Site) -> None:
        """An answer that another provider sent: its code is not shown to ours."""
        browser, back = await halfway(shared)
        url = back.url.replace(f"iss={ISSUER.replace(':', '%3A').replace('/', '%2F')}", f"iss={EVIL}")
        assert url != back.url
        await bounced(shared, browser, url)

    async def test_answer_without_issuer(self, shared: Site) -> None:
        """The provider says that it always names itself: an answer that does not is not its own."""
        browser, back = await halfway(shared)
        url = back.url.partition("&iss=")[0]
        assert url != back.url
        await bounced(shared, browser, url)

    async def test_provider_that_never_names_itself(self, shared: Site) -> None:
        """Older providers don't; then a name is checked where there is one."""
        key = "authorization_response_iss_parameter_supported"
        shared.idp.changes[DISCOVERY] = lambda said: {k: v for k, v in said.items() if k != key}
        browser, back = await halfway(shared)
        assert "token" in (await browser.go(back.url.partition("&iss=")[0])).fragment

    @pytest.mark.parametrize(
        ("quirk", "status", "code"),
        [
            (None, 400, "sso_bad_callback"),
            (claims(nonce="x"), 401, "sso_bad_id_token"),
            (without("/token", "id_token"), 502, "sso_provider_fault"),
            (signed(lambda idp, said: idp.signed(said, signing_key("second"))), 502, "sso_unknown_key"),
            (claims(sub=None), 502, "sso_provider_fault"),
        ],
    )
    async def test_caller_that_is_no_browser(
        self, shared: Site, quirk: Quirk | None, status: int, code: str
    ) -> None:
        """Gets the status and JSON, not a redirect (wire-facts 3.3)."""
        browser, back = await halfway(shared)
        url = back.url if quirk else f"{CALLBACK}?state=foreign&code=x"
        if quirk:
            quirk(shared.idp)
        before = await shared.accounts()
        page = await browser.load(url, accept="application/json")
        body = json.loads(page.body)
        assert (page.status, body["code"]) == (status, code), body
        assert page.headers["Cache-Control"] == "no-store"
        assert await shared.accounts() == before


@pytest.mark.parametrize("limit", ["login", "callback"])
async def test_rate(boot: Boot, limit: str) -> None:
    """Each client may begin and end sixty sign-ins a minute."""
    site = await boot(RATE_LIMIT_ENABLED="true", RATE_LIMIT_PER_MINUTE="1000")
    options = {"allow_redirects": False}
    found = [await site.running.anonymous.get(f"/v1/auth/oidc/{limit}", **options) for _ in range(61)]
    assert [reply.status for reply in found[:60]].count(429) == 0
    assert found[60].status == 429
