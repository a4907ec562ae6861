"""Everything that is audited, done once: each change has its entry, and no secret is in any, or in a log."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio
from pydantic import Field, SecretStr

from builtin_plugins.accounts.api import ExternalIdentity, sign_in_external
from builtin_plugins.accounts.link_approvals import approve, withdraw
from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
from builtin_plugins.accounts.setup_codes import SETUP_CODES
from kernel.auth.models import AuditEntry
from kernel.sdk import Plugin, Settings, hookimpl
from kernel.testing import Actor, Reply, Running, Start
from tests.fakes.audit import audited
from tests.fakes.earlier_release import PASSWORD, make_earlier_release
from tests.fakes.smtp_server import Mailbox, smtp_server

MANIFEST = """
apiVersion: platform.dev/v1alpha1
kind: Plugin
metadata: {name: notes, version: 1.0.0}
spec:
  trigger: {type: webhook, webhook: {path: /notes}}
  action: {type: store-vector, store: {collection: notes, input: {text: "{{ .text }}"}}}
"""
KEY, GREETING = "VAULT_KEY", "VAULT_GREETING"
PLUGINS = ("owner_secrets", "plugin_registry", "manifest_webhooks", "embeddings", "rag", "tenancy")


class VaultSettings(Settings):
    """A secret and a plain one."""

    env_prefix: ClassVar[str] = "VAULT_"
    configurable: ClassVar[frozenset[str]] = frozenset({"greeting", "key"})

    greeting: str = Field("hello", description="What to say.")
    key: SecretStr | None = Field(None, description="What nobody may see.")


class Vault(Plugin):
    """Has settings."""

    name = "vault"
    version = "1"

    @hookimpl
    def register_settings(self) -> type[VaultSettings]:
        return VaultSettings


@pytest_asyncio.fixture
async def mailbox() -> AsyncIterator[Mailbox]:
    async with smtp_server() as box:
        yield box


class Walk:
    """Does what is audited, and remembers every secret that came by."""

    def __init__(self, running: Running, mailbox: Mailbox) -> None:
        self.running = running
        self.platform = running.platform
        self.mailbox = mailbox
        self.secrets: set[str] = {PASSWORD}

    def keep(self, secret: str) -> str:
        self.secrets.add(secret)
        return secret

    async def sign_in(self, name: str, password: str = PASSWORD) -> Actor:
        actor = await self.running.sign_in(name, self.keep(password))
        self.keep(actor.token or "")
        return actor

    async def accounts(self) -> None:
        body = {"username": "ulla", "email": "ulla@example.org", "password": self.keep("canary-registered")}
        body_of(await self.running.anonymous.post("/v1/auth/register", json=body))
        ulla = await self.sign_in("ulla", "canary-registered")
        change = {"current_password": "canary-registered", "new_password": self.keep("canary-changed")}
        self.keep(body_of(await ulla.post("/v1/auth/change-password", json=change))["access_token"])
        await self.forgotten("ulla@example.org")
        ada, user = await self.sign_in("ada"), f"/v1/auth/users/{ulla.user['id']}"
        reset = {"mode": "set", "new_password": self.keep("canary-set")}
        body_of(await ada.post(f"{user}/reset-password", json=reset))
        generated = body_of(await ada.post(f"{user}/reset-password", json={"mode": "generate"}))
        self.keep(generated["temporary_password"])
        for role in ("admin", "user"):
            body_of(await ada.patch(f"{user}/role", json={"role": role}))
        for is_active in (False, True):
            body_of(await ada.patch(f"{user}/status", json={"is_active": is_active}))

    async def forgotten(self, email: str) -> None:
        await self.running.anonymous.post("/v1/auth/password-reset/request", json={"email": email})
        await self.running.run_jobs()
        match = re.search(r"token=(\S+)", self.mailbox.letters[-1].get_content())
        assert match is not None
        body = {"token": self.keep(match[1]), "new_password": self.keep("canary-forgotten")}
        confirmed = await self.running.anonymous.post("/v1/auth/password-reset/confirm", json=body)
        assert confirmed.status == 204, confirmed.body

    async def platform_admins(self) -> None:
        """A setup code, a wrong one, the claim, and the operator's grants."""
        code, _ = await self.platform.resource(SETUP_CODES).issue()
        ada = await self.sign_in("ada")
        claim = "/v1/auth/platform-admin/claim"
        wrong = await ada.post(claim, json={"code": self.keep("CANARY-CANARY-CANARY")})
        assert wrong.status == 403, wrong.body
        body_of(await ada.post(claim, json={"code": self.keep(code)}))
        self.keep(code.replace("-", ""))
        await self.platform.resource(PLATFORM_ADMINS).grant("bea")
        await self.platform.resource(PLATFORM_ADMINS).revoke("bea")

    async def links(self) -> None:
        """An approval, its withdrawal, a link that nobody approved, one that was, and a synchronised role."""
        identity = ExternalIdentity("https://id.example.org", "7", "cleo", "cleo@id.example.org", "user")
        _, token = await sign_in_external(self.platform, identity, {})
        self.keep(token)
        await approve(self.platform, "bea", {})
        await withdraw(self.platform, "bea", {})
        await approve(self.platform, "bea", {})
        for role in ("admin", "user"):
            identity = ExternalIdentity("https://id.example.org", "8", "bea", "bea@id.example.org", role)
            self.keep((await sign_in_external(self.platform, identity, {}))[1])

    async def plugins(self) -> None:
        ada = await self.sign_in("ada")
        yaml = {"headers": {"Content-Type": "application/yaml"}}
        body_of(await ada.post("/v1/plugins/install", data=MANIFEST, **yaml))
        newer = MANIFEST.replace("1.0.0", "1.1.0")
        body_of(await ada.post("/v1/plugins/reload-webhook", data=newer, **yaml))
        for change in ("disable", "enable", "enable"):
            body_of(await ada.post(f"/v1/plugins/vault/{change}"))
        for values in (
            {KEY: self.keep("canary-key"), GREETING: "moin"},
            {KEY: None, GREETING: None},
        ):
            body_of(await ada.put("/v1/plugins/vault/config", json=values))
        body_of(await ada.delete("/v1/plugins/notes"))

    async def organizations(self) -> None:
        """An organization and a team, an invite, and both ways of a team's bundle."""
        ada = await self.sign_in("ada")
        body_of(await ada.post("/v1/organizations", json={"name": "Acme", "slug": "acme"}))
        team = body_of(await ada.post("/v1/teams", json={"name": "Crew"}))["id"]
        invite = body_of(await ada.post("/v1/invites", json={"email": "new@example.org", "team_id": team}))
        self.keep(invite["token"])
        bundle = body_of(await ada.get(f"/v1/teams/{team}/export"))
        body_of(await ada.post(f"/v1/teams/{team}/import", json={"bundle": bundle}))


def body_of(reply: Reply) -> Any:
    assert reply.status in (200, 201), reply.body
    return reply.json()


async def test_everything_once(
    start_platform: Start,
    platform_home: Path,
    mailbox: Mailbox,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Every kind of change leaves its entries, and neither they nor the log hold a secret that came by."""
    caplog.set_level(logging.DEBUG, logger="platform")
    await make_earlier_release(platform_home, None, ada="admin", bea="admin", cleo="user")
    mail = {**mailbox.env, "PLATFORM_CLIENT_URL": "https://client.example.org"}
    walk = Walk(await start_platform(*PLUGINS, Vault, env=mail), mailbox)
    await walk.platform_admins()
    await walk.accounts()
    await walk.links()
    await walk.plugins()
    await walk.organizations()
    entries = await audited(walk.platform)
    assert {entry.action for entry in entries} >= EXPECTED
    log = caplog.text + "".join(capfd.readouterr())
    for entry in entries:
        _check(entry, walk.secrets)
    assert [secret for secret in walk.secrets if secret in log] == []


EXPECTED = {
    "account.activated",
    "account.created",
    "account.deactivated",
    "account.password_changed",
    "account.password_reset",
    "account.role_changed",
    "organization.created",
    "organization.member_added",
    "platform_admin.claim_refused",
    "platform_admin.code_issued",
    "platform_admin.granted",
    "platform_admin.revoked",
    "plugin.configured",
    "plugin.disabled",
    "plugin.enabled",
    "plugin.installed",
    "plugin.uninstalled",
    "plugin.updated",
    "sso_link.approved",
    "sso_link.completed",
    "sso_link.refused",
    "sso_link.revoked",
    "team.created",
    "team.exported",
    "team.imported",
}
# An entry tells both states where there is one before and one after.
BOTH = {
    "account.activated",
    "account.deactivated",
    "account.role_changed",
    "platform_admin.granted",
    "platform_admin.revoked",
    "plugin.configured",
    "plugin.disabled",
    "plugin.enabled",
    "plugin.updated",
    "sso_link.approved",
    "sso_link.completed",
    "sso_link.revoked",
}


def _check(entry: AuditEntry, secrets: set[str]) -> None:
    text = json.dumps(
        [entry.before_state, entry.after_state, entry.target_id, entry.ip_address, entry.user_agent]
    )
    assert [secret for secret in secrets if secret in text] == [], entry.action
    assert "argon2" not in text, entry.action
    if entry.action in BOTH:
        assert entry.before_state and entry.after_state, entry.action
        assert entry.before_state != entry.after_state, entry.action


async def test_configuration_tells_what_it_was(start_platform: Start) -> None:
    """Plain values as they were and are, null for the environment's; of a secret whether it is set."""
    running = await start_platform("plugin_registry", Vault)
    ada = await running.user("ada", role="admin")
    for values in (
        {KEY: "one", GREETING: "moin"},
        {KEY: "two"},
        {KEY: None, GREETING: None},
    ):
        body_of(await ada.put("/v1/plugins/vault/config", json=values))
    body_of(await ada.put("/v1/plugins/vault/config", json={}))
    found = await audited(running.platform, "plugin.configured")
    assert [(entry.before_state, entry.after_state) for entry in found] == [
        ({GREETING: None, KEY: None}, {GREETING: "moin", KEY: "***"}),
        ({KEY: "***"}, {KEY: "***"}),
        ({GREETING: "moin", KEY: "***"}, {GREETING: None, KEY: None}),
    ]


async def test_switching_twice_is_told_once(start_platform: Start) -> None:
    """A plugin that is enabled already is not enabled again."""
    running = await start_platform("plugin_registry", Vault)
    ada = await running.user("ada", role="admin")
    for change in ("enable", "disable", "disable", "enable"):
        body_of(await ada.post(f"/v1/plugins/vault/{change}"))
    found = [entry for entry in await audited(running.platform) if entry.target_type == "plugin"]
    assert [(entry.action, entry.before_state, entry.after_state) for entry in found] == [
        ("plugin.disabled", {"enabled": True}, {"enabled": False}),
        ("plugin.enabled", {"enabled": False}, {"enabled": True}),
    ]
