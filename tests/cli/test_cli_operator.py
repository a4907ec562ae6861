"""The operator's hand on accounts: with the platform running or not, audited, and idempotent."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from kernel.testing import Actor, Running, Start
from tests.cli.conftest import Cli
from tests.fakes.audit import audited
from tests.fakes.earlier_release import PASSWORD, make_earlier_release
from tests.fakes.small_disk import small_disk
from tests.fakes.waiting import eventually

Command = Callable[..., Awaitable[Result]]


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str | None:
    """SQLite; a test that names `database_url` runs on PostgreSQL too."""
    return request.getfixturevalue("database_url") if "database_url" in request.fixturenames else None


@pytest.fixture
def command(cli: Cli, database: str | None) -> Command:
    """Runs a command beside a platform, on the same database."""
    env = {"DATABASE_URL": database} if database else None

    async def run(*arguments: str, **options: Any) -> Result:
        return await asyncio.to_thread(cli, *arguments, env=env, **options)

    return run


@pytest.fixture
async def running(start_platform: Start, database: str | None) -> Running:
    return await start_platform(env={"DATABASE_URL": database})


async def status(actor: Actor, path: str = "/v1/auth/users") -> int:
    return (await actor.get(path)).status


async def until(actor: Actor, wanted: int) -> None:
    async def heard() -> bool:
        return await status(actor) == wanted

    await eventually(heard, 5)


class TestPlatformAdmin:
    async def test_beside_a_running_platform(
        self, command: Command, running: Running, database_url: str | None
    ) -> None:
        """A grant and a revocation reach the platform that runs, and both are audited as the operator's."""
        await running.user("ada", role="admin")
        ulla = await running.user("ulla")
        assert (await command("platform-admin", "grant", "ulla")).exit_code == 0
        await until(ulla, 200)
        assert (await command("platform-admin", "revoke", "ulla")).exit_code == 0
        await until(ulla, 401)
        entries = [e for e in await audited(running.platform) if e.target_id == str(ulla.user["id"])]
        assert [e.action for e in entries] == [
            "account.created",
            "platform_admin.granted",
            "platform_admin.revoked",
        ]
        assert {(e.actor_id, e.user_agent, e.ip_address) for e in entries[1:]} == {
            (None, "platformctl", None)
        }

    async def test_last_one(self, command: Command, running: Running) -> None:
        """The last one can be revoked; the command warns and names the one that makes another."""
        await running.user("ada", role="admin")
        revoked = await command("platform-admin", "revoke", "ada")
        assert (revoked.exit_code, "platform-admin grant" in revoked.stderr) == (0, True)
        assert "platform-admin grant" in (await command("platform-admin", "list")).stderr

    async def test_list(self, command: Command, running: Running) -> None:
        await running.user("ada", role="admin")
        await running.user("ulla")
        assert "ada@example.org" in (await command("platform-admin", "list")).stdout
        listed = json.loads((await command("platform-admin", "list", "--json")).stdout)
        assert (listed["total"], [item["username"] for item in listed["items"]]) == (1, ["ada"])

    @pytest.mark.parametrize("group", ["platform-admin grant", "platform-admin revoke", "sso-link approve"])
    async def test_unknown_account(self, command: Command, group: str) -> None:
        missing = await command(*group.split(), "nobody")
        assert (missing.exit_code, "'nobody'" in missing.stderr) == (3, True)
        assert "users list" in missing.stderr


class TestSetupCode:
    async def test_whole_way(
        self, command: Command, start_platform: Start, platform_home: Path, database_url: str | None
    ) -> None:
        """The code is alone on standard output, works on the running platform, and then no more are made."""
        await make_earlier_release(platform_home, database_url, ada="admin")
        running = await start_platform(env={"DATABASE_URL": database_url})
        assert "setup-code" in (await command("platform-admin", "list")).stderr
        issued = await command("platform-admin", "setup-code")
        code = issued.stdout.strip()
        assert (issued.exit_code, len(code), code in issued.stderr) == (0, 20, False)
        ada = await running.sign_in("ada", PASSWORD)
        assert (await ada.post("/v1/auth/platform-admin/claim", json={"code": code})).status == 200
        refused = await command("platform-admin", "setup-code")
        assert (refused.exit_code, "platform-admin grant" in refused.stderr) == (4, True)

    async def test_json(self, command: Command, platform_home: Path) -> None:
        await make_earlier_release(platform_home, None, ada="admin")
        issued = json.loads((await command("platform-admin", "setup-code", "--json")).stdout)
        assert set(issued) == {"code", "expires_at"}


class TestSsoLink:
    async def test_approval(self, command: Command, running: Running) -> None:
        """Approved, listed, revoked; twice is once, and each real change is audited."""
        await running.user("ulla")
        assert "ulla" not in (await command("sso-link", "list")).output
        assert (await command("sso-link", "approve", "ulla")).exit_code == 0
        again = await command("sso-link", "approve", "ULLA", "--json")
        assert json.loads(again.stdout) == {"id": 1, "username": "ulla", "approved": True, "changed": False}
        assert "ulla@example.org" in (await command("sso-link", "list")).stdout
        listed = json.loads((await command("sso-link", "list", "--json")).stdout)
        assert (listed["total"], listed["items"][0]["username"]) == (1, "ulla")
        assert "ulla@example.org" in (await command("sso-link", "list", "ulla")).stdout
        assert (await command("sso-link", "list", "nobody")).exit_code == 3
        named = ("--identity", "ulla@corp.example")
        assert "'ulla@corp.example'" in (await command("sso-link", "approve", "ulla", *named)).stderr
        assert "ulla@corp.example" in (await command("sso-link", "list")).stdout
        assert json.loads((await command("users", "show", "ulla", "--json")).stdout)["link_approved"]
        for _ in range(2):
            assert (await command("sso-link", "revoke", "ulla")).exit_code == 0
        found = [entry for entry in await audited(running.platform) if entry.action.startswith("sso_link.")]
        assert [(e.action, e.after_state["approved"], e.user_agent) for e in found] == [
            ("sso_link.approved", True, "platformctl"),
            ("sso_link.approved", True, "platformctl"),
            ("sso_link.revoked", False, "platformctl"),
        ]


@pytest.mark.parametrize("command_line", ["users list", "platform-admin list", "secret set deploy"])
def test_database_that_is_behind(bare_cli: Cli, command_line: str) -> None:
    """Where migrations wait for the operator, the command names the one that applies them."""
    refused = bare_cli(*command_line.split(), input="s3cret", env={"PLATFORM_MIGRATE_ON_START": "false"})
    assert (refused.exit_code, "platformctl db upgrade" in refused.stderr) == (4, True)


def test_a_full_disk(cli: Cli, platform_home: Path, tmp_path: Path) -> None:
    """No room for a database is not a bug of the command: it names the disk, and asks for no traceback."""
    with small_disk(tmp_path / "disk", 8) as disk:
        shutil.copytree(platform_home, disk.folder / "home")
        env = {"PLATFORM_HOME": str(disk.folder / "home")}
        assert cli("users", "create", "ada", "--generate", env=env).exit_code == 0
        disk.fill(leaving=48 * 1024)  # enough to open the database
        refused = cli("users", "create", "zed", "--generate", env=env)
    assert refused.exit_code == 1
    assert "disk" in refused.stderr and "PLATFORM_DEBUG" not in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(
    "words",
    [
        *("users create ada --generate", "secret set deploy", "backup create", "service-token create ci"),
        *("db upgrade", "serve --port 0 --no-worker", "serve --port 0 --workers 2", "worker"),
    ],
)
def test_root_in_the_home_of_a_service(cli: Cli, platform_home: Path, words: str) -> None:
    """What root wrote there, the service could not read, and so not start: nothing is written."""
    (platform_home / "secrets").mkdir(exist_ok=True)
    for path in (platform_home, *platform_home.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    refused = cli(*words.split(), input="s3cret")
    assert (refused.exit_code, "sudo -E -u" in refused.stderr) == (4, True)
    assert "65534" in refused.stderr  # the user of a container, where there may be no sudo
    assert {path.lstat().st_uid for path in platform_home.rglob("*")} == {65534}
    assert cli("settings").exit_code == 0


class TestUsers:
    async def test_temporary_password(self, command: Command, running: Running) -> None:
        """Printed once, alone; it signs in, must be changed, and the old password and sessions are over."""
        ulla = await running.user("ulla")
        reset = await command("users", "reset-password", "ulla")
        password = reset.stdout.strip()
        assert (reset.exit_code, len(password) >= 16, password in reset.stderr) == (0, True, False)
        await until(ulla, 401)
        assert (await running.sign_in("ulla", password)).user["must_change_password"] is True
        old = {"username": "ulla", "password": ulla.password}
        assert (await running.anonymous.post("/v1/auth/login", json=old)).status == 401
        (entry,) = await audited(running.platform, "account.password_reset")
        assert (entry.actor_id, entry.user_agent) == (None, "platformctl")
        assert password not in str(vars(entry))

    async def test_given_password(self, command: Command, running: Running) -> None:
        """Read from standard input, held to the rules, and not repeated."""
        await running.user("ulla")
        short = await command("users", "reset-password", "ulla", "--password-stdin", input="short\n")
        assert (short.exit_code, "new_password" in short.stderr, "short" in short.stdout) == (2, True, False)
        given = await command("users", "reset-password", "ulla", "--password-stdin", input="battery staple\n")
        assert (given.exit_code, given.stdout) == (0, "")
        await running.sign_in("ulla", "battery staple")
        made = await command("users", "reset-password", "ulla", "--json")
        await running.sign_in("ulla", json.loads(made.stdout)["temporary_password"])

    async def test_no_password_on_the_command_line(self, command: Command) -> None:
        """It is wrong usage, where other users of the machine could see it."""
        assert (await command("users", "reset-password", "ulla", "battery staple")).exit_code == 2

    async def test_deactivation(self, command: Command, running: Running) -> None:
        """It ends the sessions of the running platform; old ones stay dead after the reactivation."""
        await running.user("ada", role="admin")
        ulla = await running.user("ulla")
        assert (await command("users", "deactivate", "ulla")).exit_code == 0
        await until(ulla, 401)
        assert (await command("users", "deactivate", "ulla")).exit_code == 0
        assert "deactivated" in (await command("users", "list")).stdout
        body = {"username": "ulla", "password": ulla.password}
        assert (await running.anonymous.post("/v1/auth/login", json=body)).status == 403
        back = await command("users", "activate", "ulla", "--json")
        assert (json.loads(back.stdout)["changed"], json.loads(back.stdout)["is_active"]) == (True, True)
        assert await status(await running.sign_in("ulla", ulla.password)) == 403
        assert await status(ulla) == 401

    async def test_first_administrator(self, command: Command) -> None:
        """On a fresh install, the command says that the first sign-in makes the Platform Admin."""
        admin = await command("users", "create", "ada", "--admin", "--generate")
        assert "Platform Admin" in admin.stderr
        assert "Platform Admin" not in (await command("users", "create", "ulla", "--generate")).stderr
