"""Sign-out here, at the provider, and by the provider's word (Back-Channel Logout 1.0)."""

from __future__ import annotations

import asyncio
import json
import re
import time
from base64 import urlsafe_b64decode
from typing import Any

import pytest
from sqlalchemy import text

from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Reply
from tests.builtin_plugins.oidc.identity_provider import CLIENT_ID, ISSUER, SIGNED_OUT, signing_key
from tests.builtin_plugins.oidc.sso_support import LOGIN, Boot, Site, compact, together
from tests.fakes.own_clock import OwnClock

EVENT = "http://schemas.openid.net/event/backchannel-logout"


async def send_logout(site: Site, token: str) -> Reply:
    path = "/v1/auth/oidc/backchannel-logout"
    reply = await site.running.anonymous.post(path, data={"logout_token": token})
    assert reply.headers["Cache-Control"] == "no-store"
    return reply


async def is_accepted(session: Actor) -> bool:
    return (await session.post("/v1/auth/refresh")).status == 200


async def signed_in(site: Site, person: str = "anna") -> Actor:
    await site.idp.knows(person)
    return await site.sign_in(person)


async def test_signed_out_everywhere(site: Site) -> None:
    """Sign out here, confirm at the provider, which notifies the platform and sends the browser back."""
    await site.idp.knows("anna")
    browser = site.browser("anna")
    page = await browser.go(LOGIN)
    anna = Actor(site.running, page.fragment["token"])
    elsewhere = await site.sign_in("anna")
    out = await anna.post("/v1/auth/oidc/logout")
    assert out.status == 200
    assert out.headers["Cache-Control"] == "no-store"
    assert not await is_accepted(anna)
    assert not await is_accepted(elsewhere)
    url = out.json()["logout_url"]
    assert url.startswith(f"{ISSUER}/session/end?")
    assert f"client_id={CLIENT_ID}" in url
    again = Actor(site.running, (await browser.go(LOGIN)).fragment["token"])
    asked = await browser.load(url)
    xsrf = re.search(rb'name="xsrf" value="(\w+)"', asked.body)
    assert xsrf is not None
    form = {"xsrf": xsrf[1].decode(), "logout": "yes"}
    confirmed = await browser.load(f"{ISSUER}/session/end/confirm", method="POST", data=form)
    assert confirmed.headers["Location"].startswith(SIGNED_OUT)
    assert not await is_accepted(again)
    assert len(await site.audited("account.sessions_ended")) == 1


@together
async def test_local_account_signs_out(shared: Site) -> None:
    """Its sessions end; there is nothing to do at the provider."""
    bob = await shared.running.user("bob")
    out = await bob.post("/v1/auth/oidc/logout")
    assert (out.status, out.json()["logout_url"]) == (200, None)
    assert not await is_accepted(bob)


@together
async def test_sign_out_needs_a_session(shared: Site) -> None:
    """A link or a foreign page can't sign anybody out: it takes the token."""
    assert (await shared.running.anonymous.post("/v1/auth/oidc/logout")).status == 401
    assert (await shared.running.anonymous.get("/v1/auth/oidc/logout")).status == 405
    service = Actor(shared.running, shared.running.platform.resource(TOKENS).mint_service("robot", 1))
    assert (await service.post("/v1/auth/oidc/logout")).status == 403


@together
async def test_provider_without_sign_out(shared: Site) -> None:
    """Sessions here end all the same, also when the provider is out of reach."""
    shared.idp.changes["/.well-known/openid-configuration"] = lambda said: {**said, "end_session_endpoint": 7}
    anna = await signed_in(shared)
    assert (await anna.post("/v1/auth/oidc/logout")).json()["logout_url"] is None
    assert not await is_accepted(anna)


async def test_logout_token(boot: Boot, database_url: str | None) -> None:
    """All sessions of the subject end, nobody else's; the next sign-in works."""
    site = await boot(DATABASE_URL=database_url)
    anna, bert = await signed_in(site), await signed_in(site, "bert")
    assert (await send_logout(site, site.idp.logout_token(sub="anna"))).status == 200
    assert not await is_accepted(anna)
    assert await is_accepted(bert)
    await signed_in(site)


async def test_logout_token_of_a_session(boot: Boot, database_url: str | None) -> None:
    """A token may name nothing but the provider's session: it is known whose that was."""
    site = await boot(DATABASE_URL=database_url)
    seen: list[str] = []
    site.idp.claims = lambda said: (seen.append(f"session of {said['sub']}"), {**said, "sid": seen[-1]})[1]
    anna, bert = await signed_in(site), await signed_in(site, "bert")
    assert (await send_logout(site, site.idp.logout_token(sid="session of anna"))).status == 200
    assert not await is_accepted(anna)
    assert await is_accepted(bert)
    assert (await send_logout(site, site.idp.logout_token(sid="unheard of"))).status == 200


@together
async def test_logout_token_without_end(shared: Site) -> None:
    anna = await signed_in(shared)
    assert (await send_logout(shared, shared.idp.logout_token(sub="anna", exp=10**400))).status == 200
    assert not await is_accepted(anna)


@together
async def test_logout_of_a_stranger(shared: Site) -> None:
    """Who has no account here is signed out already; a local account of that name stays."""
    local = await shared.running.user("carl")
    assert (await send_logout(shared, shared.idp.logout_token(sub="carl"))).status == 200
    assert await is_accepted(local)


async def test_logout_token_counts_once(boot: Boot, database_url: str | None) -> None:
    """A replay ends no later session, not even when both come at once."""
    site = await boot(DATABASE_URL=database_url)
    await signed_in(site)
    token = site.idp.logout_token(sub="anna")
    found = await asyncio.gather(send_logout(site, token), send_logout(site, token))
    assert sorted(reply.status for reply in found) == [200, 400]
    later = await signed_in(site)
    assert (await send_logout(site, token)).status == 400
    assert await is_accepted(later)


async def test_a_replay_after_a_machine_with_another_clock(
    boot: Boot, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came in is remembered by the database's clock: a machine that is ahead forgets none too early."""
    site, clock = await boot(DATABASE_URL=postgres_url), OwnClock(monkeypatch)
    await signed_in(site)
    token = site.idp.logout_token(sub="anna")
    assert (await send_logout(site, token)).status == 200
    later = await signed_in(site)
    clock.by(3600)
    long = site.idp.logout_token(sub="bert", iat=int(time.time()), exp=int(time.time()) + 60)
    assert (await send_logout(site, long)).status == 200
    clock.by(0)
    assert (await send_logout(site, token)).status == 400
    assert await is_accepted(later)


WRONG: dict[str, dict[str, Any]] = {
    "issuer": {"iss": "https://evil.example"},
    "audience": {"aud": "another client"},
    "no audience": {"aud": None},
    "no time": {"iat": None},
    "from the future": {"iat": int(time.time()) + 3600},
    "no jti": {"jti": None},
    "jti of another kind": {"jti": 7},
    "expired": {"exp": int(time.time()) - 3600},
    "no expiry": {"exp": None},
    "no events": {"events": None},
    "another event": {"events": {"http://schemas.openid.net/event/else": {}}},
    "event of another kind": {"events": {EVENT: True}},
    "events as a list": {"events": [EVENT]},
    "nonce": {"nonce": "n"},
    "nobody": {"sub": None},
    "subject of another kind": {"sub": 7},
    "session of another kind": {"sub": None, "sid": 7},
    "subject with NUL": {"sub": "anna\x00"},
}


@together
@pytest.mark.parametrize("name", WRONG)
async def test_claims_of_a_logout_token(shared: Site, name: str) -> None:
    """Each claim that the standard asks for; a wrong token is 400 and ends nothing."""
    anna = await signed_in(shared)
    reply = await send_logout(shared, shared.idp.logout_token(**{"sub": "anna", **WRONG[name]}))
    assert (reply.status, reply.json()["code"]) == (400, "sso_bad_logout_token"), reply.body
    assert await is_accepted(anna)


@together
async def test_logout_token_of_the_documents(shared: Site) -> None:
    """The example has every claim that is asked for; it lacks this provider, its signature, and the time."""
    document = (await shared.running.anonymous.get("/openapi.json")).json()
    body = document["paths"]["/v1/auth/oidc/backchannel-logout"]["post"]["requestBody"]
    [token] = body["content"]["application/x-www-form-urlencoded"]["example"].values()
    assert (await send_logout(shared, token)).json()["code"] == "sso_bad_logout_token"
    header, claims = (json.loads(urlsafe_b64decode(part + "==")) for part in token.split(".")[:2])
    now = {"iss": ISSUER, "aud": CLIENT_ID, "iat": int(time.time()), "exp": int(time.time()) + 60}
    assert set(now) < set(claims)
    reply = await send_logout(shared, shared.idp.signed({**claims, **now}, typ=header["typ"]))
    assert reply.status == 200, reply.body


@together
async def test_logout_token_by_somebody_else(shared: Site) -> None:
    """Unsigned, by another key under the right name, or of a key that nobody publishes."""
    anna = await signed_in(shared)
    said = {"iss": ISSUER, "aud": CLIENT_ID, "sub": "anna", "events": {EVENT: {}}, "jti": "1"}
    said |= {"iat": int(time.time()), "exp": int(time.time()) + 60}
    tokens = [
        compact({"alg": "none"}, said, lambda _content: b""),
        shared.idp.logout_token(signing_key("first"), sub="anna"),
        shared.idp.logout_token(signing_key("second"), sub="anna"),
        "x",
        "",
    ]
    assert [(await send_logout(shared, token)).status for token in tokens] == [400] * 5
    assert await is_accepted(anna)


@together
async def test_id_token_is_no_logout_token(shared: Site) -> None:
    seen: list[str] = []
    shared.idp.sign = lambda said: (seen.append(shared.idp.signed(said)), seen[-1])[1]
    anna = await signed_in(shared)
    for token in (seen[0], anna.token or ""):
        assert (await send_logout(shared, token)).status == 400
    assert await is_accepted(anna)


@together
@pytest.mark.parametrize(
    "body", [b"", b"logout_token=", b"logout_token=a&logout_token=b", b"\xff\xfe", b"x" * 70_000]
)
async def test_body_that_is_no_form(shared: Site, body: bytes) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    path = "/v1/auth/oidc/backchannel-logout"
    reply = await shared.running.anonymous.post(path, data=body, headers=headers)
    assert reply.status in (400, 413)
    assert reply.headers["Cache-Control"] == "no-store"
    assert shared.idp.calls == []


class TestKeys:
    async def test_rotation(self, site: Site) -> None:
        """A token signed by a key that came after the last look is accepted, after one more look."""
        await signed_in(site)
        fresh = signing_key("second")
        site.idp.changes["/jwks"] = lambda said: {"keys": [*said["keys"], fresh.as_dict(private=False)]}
        site.idp.sign = lambda said: site.idp.signed(said, fresh)
        await signed_in(site, "bert")
        await signed_in(site, "carl")
        assert site.idp.calls.count("/jwks") == 2

    async def test_withdrawn_key(self, boot: Boot) -> None:
        """A key that is published no more counts no more, once the old list is too old."""
        site = await boot(PLATFORM_OIDC_CACHE_SECONDS="0")
        await signed_in(site)
        fresh = signing_key("second")
        site.idp.changes["/jwks"] = lambda said: {"keys": [fresh.as_dict(private=False)]}
        assert (await site.visit("anna")).fragment["error"] == "sso_unknown_key"

    async def test_strangers_cause_no_flood(self, site: Site) -> None:
        """Tokens with made-up keys, sent by anybody, make the platform look again and no oftener."""
        await signed_in(site)
        for number in range(8):
            token = site.idp.logout_token(signing_key(f"made up {number}"), sub="anna")
            assert (await send_logout(site, token)).status == 400
        assert site.idp.calls.count("/jwks") == 2
        await signed_in(site, "bert")

    async def test_elliptic_curve(self, site: Site) -> None:
        """ES256 is accepted; a key of another kind in the same list is overlooked."""
        from joserfc.jwk import ECKey

        key = ECKey.generate_key("P-256", {"kid": "curve", "use": "sig"})
        strange = {"kty": "AKP", "alg": "ML-DSA-44", "kid": "later", "pub": "AAAA"}
        site.idp.changes["/jwks"] = lambda said: {"keys": [strange, key.as_dict(private=False)]}
        site.idp.sign = lambda said: site.idp.signed(said, key, alg="ES256")
        await signed_in(site)

    async def test_algorithms_that_are_not_wanted(self, boot: Boot) -> None:
        site = await boot(PLATFORM_OIDC_ALGORITHMS="ES256")
        await site.idp.knows("anna")
        assert (await site.visit("anna")).fragment["error"] == "sso_bad_id_token"


async def test_a_deleted_account_signs_in_again(site: Site) -> None:
    """A new account under the same name, with nothing from the old one."""
    old = await signed_in(site)
    claims = site.running.platform.resource(TOKENS).verify(old.token or "")
    answer = await old.delete("/v1/auth/me", json={})
    assert answer.status == 202, answer.body
    await site.running.run_jobs()
    sessions = text("SELECT count(*) FROM oidc_session")
    assert await site.running.platform.database.read(lambda session: session.scalar(sessions)) == 0
    assert not await is_accepted(old)
    new = site.running.platform.resource(TOKENS).verify((await site.sign_in("anna")).token or "")
    assert int(new["sub"]) > int(claims["sub"]) and new["username"] == claims["username"]
    assert await site.accounts() == [claims["username"]]
