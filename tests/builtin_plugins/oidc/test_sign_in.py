"""Single sign-on from the button to the token, against a certified provider."""

from __future__ import annotations

import asyncio
import logging
import secrets
from http.cookies import SimpleCookie
from typing import Any

import jwt
import pytest

from builtin_plugins.accounts.api import ACCOUNTS, ADMINISTRATION
from builtin_plugins.accounts.link_approvals import approve
from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
from kernel.sdk.accounts import operator_of
from kernel.testing import Running
from tests.builtin_plugins.oidc.browser import Browser
from tests.builtin_plugins.oidc.identity_provider import CALLBACK, CLIENT_ID, ISSUER
from tests.builtin_plugins.oidc.sso_support import FLOW, LOGIN, Boot, Site, together

CLIENT = "https://client.example.org/auth/callback"


def claims_of(token: str) -> dict[str, Any]:
    """What a token says, as a client reads it."""
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


async def account(running: Running, name: str) -> Any:
    rows, _ = await running.platform.resource(ACCOUNTS).list()
    return next(row for row in rows if row.username == name)


async def test_first_sign_in(site: Site) -> None:
    """An account without a password; the client's page gets a token, in the fragment, that works."""
    await site.idp.knows("anna", email="anna@corp.example", email_verified=True, groups=["staff"])
    page = await site.visit("anna")
    assert page.url.startswith(f"{CLIENT}#token=")
    assert set(page.fragment) == {"token"}
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    said = claims_of(page.fragment["token"])
    assert (said["username"], said["email"], said["role"]) == ("anna", "anna@corp.example", "user")
    made = await account(site.running, "anna")
    assert (made.sso_issuer, made.sso_subject, made.password_hash) == (ISSUER, "anna", None)


async def test_token_is_a_session(site: Site) -> None:
    """It refreshes; but there is no password to change or to sign in with."""
    await site.idp.knows("anna")
    anna = await site.sign_in("anna")
    assert (await anna.post("/v1/auth/refresh")).status == 200
    change = {"current_password": "whatever", "new_password": "long enough"}
    assert (await anna.post("/v1/auth/change-password", json=change)).status == 409
    body = {"username": "anna", "password": "whatever"}
    assert (await site.running.anonymous.post("/v1/auth/login", json=body)).status == 401


@together
async def test_way_to_the_provider(shared: Site) -> None:
    """Code, PKCE with S256, state and nonce; the way back is the configured one, whatever the Host says."""
    browser = shared.browser()
    page = await browser.go(LOGIN, until=f"{ISSUER}/auth")
    asked = page.query
    assert asked["redirect_uri"] == CALLBACK
    assert (asked["client_id"], asked["response_type"]) == (CLIENT_ID, "code")
    assert asked["scope"] == "openid profile email groups"
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["code_challenge"]) == 43
    assert asked["state"] == browser.cookie("oidc_state", CALLBACK)
    assert asked["nonce"] == browser.cookie("oidc_nonce", CALLBACK)
    assert len({asked["state"], asked["nonce"]}) == 2
    forged = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    reply = await shared.running.anonymous.get("/v1/auth/oidc/login", headers=forged, allow_redirects=False)
    assert "evil.example" not in reply.headers["Location"]


@together
async def test_cookies(shared: Site) -> None:
    """Five minutes, out of reach of scripts, https:// alone; gone after the callback."""
    await shared.idp.knows("anna")
    browser = shared.browser("anna")
    await browser.load(LOGIN)
    state = browser.cookie("oidc_state", CALLBACK) or ""
    names = {"oidc_state", "oidc_nonce", f"{FLOW}{state}"}
    set_there = [SimpleCookie(line) for line in browser.cookies_set]
    assert {name for cookie in set_there for name in cookie} == names
    for cookie in set_there:
        (morsel,) = cookie.values()
        assert (morsel["max-age"], morsel["path"], morsel["samesite"]) == ("300", "/", "Lax")
        assert morsel["httponly"]
        assert morsel["secure"]
        assert morsel["domain"] == ""
    assert len(state) == 32
    page = await browser.go(LOGIN)
    assert "token" in page.fragment
    last = next(visited for visited in browser.visited if visited.url.startswith(CALLBACK)).query["state"]
    gone = ("oidc_state", "oidc_nonce", f"{FLOW}{last}")
    assert not any(browser.cookie(name, CALLBACK) for name in gone)


@together
async def test_in_several_tabs(shared: Site) -> None:
    """Sign-ins that one browser begins at the same time all succeed, in any order."""
    await shared.idp.knows("anna")
    browser = shared.browser("anna")
    tabs = [await browser.go(LOGIN, until=CALLBACK) for _ in range(3)]
    for tab in (tabs[1], tabs[0], tabs[2]):
        assert "token" in (await browser.go(tab.url)).fragment


@together
async def test_in_very_many_tabs(shared: Site) -> None:
    """Only the newest five are kept: cookies of hundreds would not fit into a request any more."""
    await shared.idp.knows("anna")
    browser = shared.browser("anna")
    tabs = [await browser.go(LOGIN, until=CALLBACK) for _ in range(8)]
    kept = [bool(browser.cookie(f"{FLOW}{tab.query['state']}", CALLBACK)) for tab in tabs]
    assert kept == [False] * 3 + [True] * 5
    assert "error" in (await browser.go(tabs[0].url)).fragment
    assert "token" in (await browser.go(tabs[3].url)).fragment


async def test_nobody_is_called_unasked(site: Site) -> None:
    """Not at the start, not by the health check, not by the sign-in page; then each document once."""
    await site.running.anonymous.get("/health")
    await site.running.anonymous.get("/v1/auth/capabilities")
    assert site.idp.calls == []
    await site.idp.knows("anna")
    for _ in range(2):
        await site.visit("anna")
    assert site.idp.calls.count("/.well-known/openid-configuration") == 1
    assert site.idp.calls.count("/jwks") == 1


async def test_sign_in_page_shows_the_button(boot: Boot) -> None:
    """With its label, and an address on the host that the provider sends browsers back to."""
    site = await boot(PLATFORM_OIDC_LABEL="Corporate login")
    found = (await site.running.anonymous.get("/v1/auth/capabilities")).json()["sign_in_methods"]
    assert found == [{"name": "oidc", "label": "Corporate login", "login_url": LOGIN}]


async def test_silent_second_sign_in(site: Site) -> None:
    """A session at the provider completes without asking, and finds the same account."""
    await site.idp.knows("anna")
    browser = site.browser("anna")
    first = await browser.go(LOGIN)
    browser.become(None, ISSUER)
    second = await browser.go(LOGIN)
    assert claims_of(first.fragment["token"])["sub"] == claims_of(second.fragment["token"])["sub"]
    assert await site.accounts() == ["anna"]


async def test_provider_is_followed(site: Site) -> None:
    """Name, address and role at each sign-in; leaving the group ends the sessions of an administrator."""
    await site.running.user("boss", role="admin")
    await site.idp.knows("s-7", preferred_username="anna", email="a@corp.example", groups=["admins"])
    first = await site.sign_in("s-7")
    assert claims_of(first.token or "")["role"] == "admin"
    await site.idp.knows("s-7", preferred_username="ann", email="b@corp.example", groups=["staff"])
    second = claims_of((await site.sign_in("s-7")).token or "")
    assert (second["username"], second["email"], second["role"]) == ("ann", "b@corp.example", "user")
    assert (await first.post("/v1/auth/refresh")).status == 401
    assert sorted(await site.accounts()) == ["ann", "boss"]


@together
@pytest.mark.parametrize("groups", [None, [], "admin", {"admins": True}, [7, None], ["Admins"]])
async def test_groups_that_make_nobody_administrator(shared: Site, groups: Any) -> None:
    said = {} if groups is None else {"groups": groups}
    name = f"person-{secrets.token_hex(4)}"
    await shared.idp.knows(name, **said)
    assert claims_of((await shared.sign_in(name)).token or "")["role"] == "user"


OVERAGE = {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://graph"}}}


@pytest.mark.parametrize("said", [OVERAGE, {"hasgroups": True}, {"hasgroups": "true"}])
@pytest.mark.parametrize("where", ["userinfo", "token"])
async def test_more_groups_than_the_provider_sends(
    site: Site, said: dict[str, Any], where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A provider that names the groups elsewhere says nothing about them: the role stays, and the log says
    why; a new account is a user.
    """
    await site.running.user("boss", role="admin")
    await site.idp.knows("anna", groups=["admins"])
    assert claims_of((await site.sign_in("anna")).token or "")["role"] == "admin"
    for person in ("anna", "new"):
        await site.idp.knows(person)
    if where == "token":
        site.idp.claims = lambda claims: {**claims, **said}
    else:
        site.idp.changes["/me"] = lambda claims: {**claims, **said}
    with caplog.at_level(logging.WARNING):
        assert claims_of((await site.sign_in("anna")).token or "")["role"] == "admin"
    assert "'groups'" in caplog.text
    assert claims_of((await site.sign_in("new")).token or "")["role"] == "user"
    await site.idp.knows("anna", groups=["staff"])
    assert claims_of((await site.sign_in("anna")).token or "")["role"] == "user", "groups that are sent count"


@pytest.mark.parametrize(
    ("claim", "sent"),
    [
        ("realm_access.roles", {"realm_access": {"roles": ["platform-admins"]}}),
        ("https://corp.example/groups", {"https://corp.example/groups": ["platform-admins"]}),
    ],
    ids=["path", "address"],
)
async def test_groups_elsewhere(boot: Boot, claim: str, sent: dict[str, Any]) -> None:
    """The claim may lie deeper, or be an address, whose dots are no path; groups may have other names."""
    site = await boot(PLATFORM_OIDC_GROUPS_CLAIM=claim, PLATFORM_OIDC_ADMIN_GROUPS="ops, platform-admins")
    site.idp.changes["/me"] = lambda said: {**said, **sent}
    await site.idp.knows("anna")
    assert claims_of((await site.sign_in("anna")).token or "")["role"] == "admin"


async def test_without_address_and_name(site: Site) -> None:
    """The documented fallback: subject, and subject at the provider's host."""
    await site.idp.knows("s-9", preferred_username=None)
    said = claims_of((await site.sign_in("s-9")).token or "")
    assert (said["username"], said["email"]) == ("s-9", "s-9@idp.example.net")


@together
@pytest.mark.parametrize(
    "email",
    ["no address", "a@b@c", "a@b\r\nBcc: x@y", "<a@b>", "a" * 300 + "@b", "\ud800@b.example", "a\x00@b", 7],
)
async def test_address_that_is_none(shared: Site, email: Any) -> None:
    name = f"person-{secrets.token_hex(4)}"
    await shared.idp.knows(name, email=email)
    assert claims_of((await shared.sign_in(name)).token or "")["email"] == f"{name}@idp.example.net"


@pytest.mark.parametrize(
    ("trusted", "expected"), [("false", "anna@idp.example.net"), ("true", "boss@corp.example")]
)
async def test_unverified_address(boot: Boot, trusted: str, expected: str) -> None:
    """What the provider itself calls unverified could be anybody's, unless the operator trusts it."""
    site = await boot(PLATFORM_OIDC_TRUST_UNVERIFIED_EMAIL=trusted)
    await site.idp.knows("anna", email="boss@corp.example", email_verified=False)
    assert claims_of((await site.sign_in("anna")).token or "")["email"] == expected


async def test_userinfo_fails(site: Site) -> None:
    """Not fatal: a new account gets what the ID token says, an existing one keeps what it has."""
    site.idp.statuses["/me"] = 500
    await site.running.user("boss", role="admin")
    await site.idp.knows("anna", email="a@corp.example", groups=["admins"])
    first = claims_of((await site.sign_in("anna")).token or "")
    assert (first["username"], first["email"], first["role"]) == ("anna", "anna@idp.example.net", "user")
    site.idp.statuses.clear()
    await site.sign_in("anna")
    site.idp.statuses["/me"] = 500
    again = claims_of((await site.sign_in("anna")).token or "")
    assert (again["email"], again["role"]) == ("a@corp.example", "admin")


async def test_id_token_alone(site: Site) -> None:
    """A provider without userinfo: the claims of the ID token count, also a group that is missing there."""
    site.idp.changes["/.well-known/openid-configuration"] = lambda said: {**said, "userinfo_endpoint": None}
    site.idp.claims = lambda said: {**said, "preferred_username": "ann", "groups": ["admins"]}
    await site.idp.knows("anna")
    said = claims_of((await site.sign_in("anna")).token or "")
    assert (said["username"], said["role"]) == ("ann", "admin")


async def test_secret_in_the_form(site: Site) -> None:
    """A provider that takes no HTTP Basic gets the secret in the form."""
    methods = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    site.idp.changes["/.well-known/openid-configuration"] = lambda said: {**said, **methods}
    site.idp.statuses["/token"] = 401
    await site.idp.knows("anna")
    assert (await site.visit("anna")).fragment["error"] == "sso_provider_fault"
    assert site.idp.forms[-1]["client_secret"] == site.idp.secret


async def test_deactivated_account(site: Site) -> None:
    """The login page hears why; a caller without a browser gets 403."""
    await site.idp.knows("anna")
    await site.sign_in("anna")
    made = await account(site.running, "anna")
    await site.running.platform.resource(ADMINISTRATION).set_active(
        operator_of(site.running.platform), made.id, False
    )
    page = await site.visit("anna")
    assert page.fragment["error"] == "account_disabled"
    assert "token" not in page.fragment


async def test_linked_account(site: Site) -> None:
    """A local account that the operator approved is the provider's afterwards, with all that follows."""
    local, boss = await site.running.user("anna"), await site.running.user("boss", role="admin")
    await site.running.platform.resource(PLATFORM_ADMINS).grant("boss")
    await site.idp.knows("anna", email="anna@corp.example", groups=["admins"])
    await approve(site.running.platform, "anna", {})
    anna = await site.sign_in("anna")
    said = claims_of(anna.token or "")
    assert said["sub"] == str(local.user["id"])
    assert (said["role"], said["email"], said["platform_admin"]) == ("admin", "anna@corp.example", False)
    assert (await local.post("/v1/auth/refresh")).status == 401
    place = f"/v1/auth/users/{local.user['id']}"
    change = {"current_password": local.password, "new_password": "long enough"}
    assert (await anna.post("/v1/auth/change-password", json=change)).status == 409
    assert (await boss.post(f"{place}/reset-password", json={"mode": "generate"})).status == 409
    assert (await boss.patch(f"{place}/role", json={"role": "user"})).status == 409


async def test_two_processes(boot: Boot) -> None:
    """A sign-in may begin in one process and end in another; its state counts once in all of them."""
    one, two = await boot(), await boot()
    await one.idp.knows("anna")
    browser = one.browser("anna")
    back = await browser.go(LOGIN, until=CALLBACK)
    name = f"{FLOW}{back.query['state']}"
    kept = browser.cookie(name, CALLBACK) or ""
    for site, expected in ((two, "token"), (one, "error")):
        other = site.browser()
        other.plant(name, kept, CALLBACK)
        assert expected in (await other.go(back.url)).fragment


@pytest.mark.parametrize("people", [["anna"] * 4, ["anna", "bert"] * 2])
async def test_at_the_same_time(boot: Boot, database_url: str | None, people: list[str]) -> None:
    """First sign-ins at once, in one session at the provider, make one account for each person."""
    site = await boot(DATABASE_URL=database_url)
    site.idp.claims = lambda said: {**said, "sid": f"session of {said['sub']}"}
    for name in set(people):
        await site.idp.knows(name)
    pages = await asyncio.gather(*(site.visit(name) for name in people))
    assert all("token" in page.fragment for page in pages)
    assert sorted(await site.accounts()) == sorted(set(people))


async def test_other_requests_go_on(boot: Boot) -> None:
    """While the provider hangs, everything else is served: nothing waits in the event loop."""
    site = await boot(PLATFORM_OIDC_TIMEOUT="60")
    site.idp.hangs.add("/.well-known/openid-configuration")
    waiting = asyncio.create_task(site.browser().load(LOGIN))
    await site.idp.called.wait()
    assert (await site.running.anonymous.get("/v1/auth/capabilities")).status == 200
    assert not waiting.done()
    waiting.cancel()


async def test_nothing_secret_is_written_down(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Neither token, code, state, nonce nor the client's secret are in logs or the audit log."""
    caplog.set_level(logging.DEBUG)
    await site.idp.knows("anna", groups=["admins"])
    browser = site.browser("anna")
    page = await browser.go(LOGIN)
    callback = next(p for p in browser.visited if p.url.startswith(CALLBACK))
    actions = ("account.created", "platform_admin.granted")
    written = caplog.text + str([await site.audited(action) for action in actions])
    assert "account" in written
    hidden = [page.fragment["token"], callback.query["code"], callback.query["state"], site.idp.secret]
    assert not [secret for secret in hidden if secret in written]
    assert not [p for p in browser.visited if page.fragment["token"] in p.url]


async def test_trying_out_on_one_machine(boot: Boot) -> None:
    """With the setting for it, http:// on loopback works, with cookies that http:// sends."""
    here = "http://localhost:8000"
    site = await boot(
        PLATFORM_OIDC_ALLOW_INSECURE="true",
        PLATFORM_OIDC_REDIRECT_URI=f"{here}/v1/auth/oidc/callback",
        PLATFORM_CLIENT_BASE_URL=None,
    )
    async with site.client() as session:
        browser = Browser(session, {here: site.running.url, ISSUER: site.idp.url})
        page = await browser.go(f"{here}/v1/auth/oidc/login", until=f"{ISSUER}/auth")
        assert page.query["redirect_uri"].startswith(here)
        state = browser.cookie("oidc_state", here)
        assert browser.cookie(f"oidc_flow_{state}", f"{here}/v1/auth/oidc/callback")
        back = await browser.go(
            f"{here}/v1/auth/oidc/callback?error=access_denied&iss={ISSUER}&state={state}"
        )
    assert back.url.startswith(f"{here}/auth/callback#error=sso_refused")
