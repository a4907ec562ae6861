"""The plugin as an operator meets it: hidden, refused with a reason, or offered."""

from __future__ import annotations

import pytest

from builtin_plugins.oidc.settings import OidcSettings
from kernel.sdk import PLUGIN_STATES
from kernel.testing import Running, Start

GOOD = {
    "PLATFORM_OIDC_ISSUER": "https://idp.example.net",
    "PLATFORM_OIDC_CLIENT_ID": "platform",
    "PLATFORM_OIDC_REDIRECT_URI": "https://platform.example.org/v1/auth/oidc/callback",
}


async def methods(running: Running) -> list[dict[str, str]]:
    answer = await running.anonymous.get("/v1/auth/capabilities")
    offered: list[dict[str, str]] = answer.json()["sign_in_methods"]
    return offered


async def test_hidden_without_settings(start_platform: Start) -> None:
    """No button, clear answers, nothing unhealthy; local accounts as ever."""
    running = await start_platform("oidc")
    assert await methods(running) == []
    for path in ("login", "callback?code=1&state=2"):
        reply = await running.anonymous.get(f"/v1/auth/oidc/{path}", headers={"Accept": "text/html"})
        assert (reply.status, reply.json()["code"]) == (404, "sso_not_configured")
    form = {"logout_token": "x"}
    assert (await running.anonymous.post("/v1/auth/oidc/backchannel-logout", data=form)).status == 404
    assert (await running.anonymous.get("/health")).json()["checks"]["plugins"] == "healthy"
    await running.user("local")


@pytest.mark.parametrize(
    "changed",
    [
        {"PLATFORM_OIDC_REDIRECT_URI": "http://localhost:8000/v1/auth/oidc/callback"},
        {"PLATFORM_OIDC_REDIRECT_URI": "https://localhost/v1/auth/oidc/callback"},
        {"PLATFORM_OIDC_REDIRECT_URI": "https://192.0.2.7/v1/auth/oidc/callback"},
        {"PLATFORM_OIDC_REDIRECT_URI": "https://[2001:db8::1]/v1/auth/oidc/callback"},
        {"PLATFORM_OIDC_REDIRECT_URI": "http://platform.example.org/v1/auth/oidc/callback"},
        {"PLATFORM_OIDC_ISSUER": "http://idp.example.net"},
    ],
)
async def test_hidden_without_names_and_tls(
    start_platform: Start, changed: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Over plain localhost or a bare address the button is hidden (spec 5.5); the log says why."""
    running = await start_platform("oidc", env={**GOOD, **changed})
    assert await methods(running) == []
    assert (await running.anonymous.get("/v1/auth/oidc/login")).status == 404
    assert "single sign-on" in caplog.text


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"PLATFORM_OIDC_CLIENT_ID": None}, "PLATFORM_OIDC_CLIENT_ID"),
        ({"PLATFORM_OIDC_REDIRECT_URI": None}, "PLATFORM_OIDC_REDIRECT_URI"),
        ({"PLATFORM_OIDC_REDIRECT_URI": "https://platform.example.org/elsewhere"}, "callback"),
        ({"PLATFORM_OIDC_ISSUER": "idp.example.net"}, "PLATFORM_OIDC_ISSUER"),
        ({"PLATFORM_OIDC_ISSUER": "https://user:pw@idp.example.net"}, "PLATFORM_OIDC_ISSUER"),
        ({"PLATFORM_OIDC_ISSUER": "https://idp.example.net/?a=b"}, "PLATFORM_OIDC_ISSUER"),
        ({"PLATFORM_OIDC_SCOPE": "profile"}, "PLATFORM_OIDC_SCOPE"),
        ({"PLATFORM_OIDC_ALGORITHMS": "RS256,none"}, "PLATFORM_OIDC_ALGORITHMS"),
        ({"PLATFORM_OIDC_ALGORITHMS": "HS256"}, "PLATFORM_OIDC_ALGORITHMS"),
        ({"PLATFORM_OIDC_ALGORITHMS": ","}, "PLATFORM_OIDC_ALGORITHMS"),
    ],
)
async def test_wrong_settings(start_platform: Start, changed: dict[str, str | None], named: str) -> None:
    """Refuse the plugin, name the field, and leave the rest of the platform alone."""
    running = await start_platform("oidc", env={**GOOD, **changed})
    (record,) = [record for record in running.platform.plugins if record.name == "oidc"]
    assert record.status == "failed"
    assert named in (record.reason or "")
    assert "pw" not in (record.reason or "")
    assert await methods(running) == []


async def test_switched_off(start_platform: Start) -> None:
    """An administrator who disables the plugin takes the button away."""
    running = await start_platform("oidc", env=GOOD)
    assert len(await methods(running)) == 1
    running.platform.resource(PLUGIN_STATES).switch_off(["oidc"])
    assert await methods(running) == []
    assert (await running.anonymous.get("/v1/auth/oidc/login")).status == 403


def test_names_of_the_earlier_deployment() -> None:
    names = OidcSettings.env_names()
    assert "AUTHELIA_ISSUER_URL" in names["issuer"]
    assert "AUTHELIA_INTERNAL_URL" in names["internal_url"]
    for field in ("client_id", "client_secret", "redirect_uri"):
        assert names[field] == (f"PLATFORM_OIDC_{field.upper()}",)
