"""Accounts, secrets and service tokens from the command line."""

from __future__ import annotations

import asyncio
import json
import stat
from datetime import datetime
from pathlib import Path

import pytest

from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Start
from tests.cli.conftest import Cli
from tests.fakes.audit import audited
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.waiting import eventually


async def eventually_refused(actor: Actor) -> None:
    async def refused() -> bool:
        return (await actor.get("/v1/jobs")).status == 401

    await eventually(refused, 5)


class TestUsers:
    async def test_created_account_can_sign_in(self, cli: Cli, start_platform: Start) -> None:
        """The administrator that the operator makes signs in over HTTP with the password that was read."""
        made = await asyncio.to_thread(
            cli, "users", "create", "ada", "--admin", "--password-stdin", input="correct horse\n"
        )
        assert made.exit_code == 0, made.output
        running = await start_platform()
        ada = await running.sign_in("ada", "correct horse")
        assert (ada.user["username"], ada.user["role"]) == ("ada", "admin")

    def test_with_a_store_of_a_plugin(self, cli: Cli) -> None:
        """Commands that load no plugins need no store, so they don't miss the one that the settings name."""
        store = {"PLATFORM_BLOB_STORE": "s3://bucket/files", "PLATFORM_S3_ENDPOINT": "http://127.0.0.1:1"}
        env = {**store, "PLATFORM_S3_ACCESS_KEY": "key", "PLATFORM_S3_SECRET_KEY": "secret"}
        made = cli("users", "create", "bot", "--generate", env=env)
        assert made.exit_code == 0, made.output
        listed = cli("jobs", "list", env=env)
        assert listed.exit_code == 0, listed.output

    def test_generated_password_is_printed_alone(self, cli: Cli) -> None:
        result = cli("users", "create", "bot", "--generate")
        assert len(result.stdout.strip()) >= 20
        assert result.stdout.strip() not in result.stderr

    def test_two_sources_of_a_password_are_wrong_usage(self, cli: Cli) -> None:
        assert cli("users", "create", "bot", "--generate", "--password-stdin").exit_code == 2

    @pytest.mark.parametrize(
        ("arguments", "password", "field"),
        [
            (("ada",), "short", "password"),
            (("ada lovelace",), "long enough", "username"),
            (("ada", "--email", "nowhere"), "long enough", "email"),
        ],
    )
    def test_rules_are_those_of_registration(
        self, cli: Cli, arguments: tuple[str, ...], password: str, field: str
    ) -> None:
        """What the API would refuse is refused here, naming the field, and the password is not repeated."""
        result = cli("users", "create", *arguments, "--password-stdin", input=password)
        assert result.exit_code == 2
        assert f"{field}: " in result.stderr
        assert "Value error" not in result.stderr
        assert password not in result.stderr

    def test_taken_name_is_refused(self, cli: Cli) -> None:
        cli("users", "create", "ada", "--generate")
        result = cli("users", "create", "ADA", "--email", "other@example.org", "--generate")
        assert result.exit_code == 4
        assert json.loads(cli("users", "list", "--json").stdout)["total"] == 1

    async def test_deleted(self, cli: Cli, start_platform: Start) -> None:
        """Asked first; then the name is free, a job removes the rest, and what others use needs an heir."""
        for name in ("ada", "bob"):
            made = ("users", "create", name, "--password-stdin")
            assert (await asyncio.to_thread(cli, *made, input="correct horse\n")).exit_code == 0
        running = await start_platform("rag", HashEmbeddings())
        bob = await running.sign_in("bob", "correct horse")
        body = {"name": "Atlas", "embedding_model": "all-minilm", "visibility": "shared"}
        base = (await bob.post("/v1/rag/knowledge-bases", json=body)).json()["id"]
        delete = ("users", "delete", "bob")
        assert (await asyncio.to_thread(cli, *delete, input="n\n")).exit_code == 1
        refused = await asyncio.to_thread(cli, *delete, "--yes")
        assert refused.exit_code == 4 and "'Atlas'" in refused.stderr and "--heir" in refused.stderr
        assert (await asyncio.to_thread(cli, *delete, "--yes", "--heir", "nobody")).exit_code == 3
        assert (await asyncio.to_thread(cli, *delete, "--yes", "--heir", "bob")).exit_code == 4
        done = await asyncio.to_thread(cli, *delete, "--heir", "ada", "--json", input="y\n")
        assert done.exit_code == 0, done.output
        assert (await asyncio.to_thread(cli, *delete, "--yes")).exit_code == 3
        listed = json.loads((await asyncio.to_thread(cli, "users", "list", "--json")).stdout)
        assert [one["username"] for one in listed["items"]] == ["ada"] and listed["total"] == 1
        ada = await running.sign_in("ada", "correct horse")
        assert (await ada.get(f"/v1/rag/knowledge-bases/{base}")).json()["owner_id"] == ada.user["id"]
        await eventually_refused(bob)

    def test_list(self, cli: Cli) -> None:
        """Accounts are listed for people and for programs, and no password hash with them."""
        cli("users", "create", "ada", "--admin", "--generate")
        cli("users", "create", "bob", "--email", "bob@example.org", "--generate")
        cli("users", "create", "cid", "--generate")
        listed = json.loads(cli("users", "list", "--json", "--limit", "1", "--offset", "1").stdout)
        assert (listed["total"], [item["username"] for item in listed["items"]]) == (3, ["bob"])
        table = cli("users", "list").stdout
        assert "bob@example.org" in table
        assert "argon2" not in table + json.dumps(listed)

    async def test_show(self, cli: Cli, start_platform: Start) -> None:
        """An account's facts, by a name in any case; for a program, every field."""
        await asyncio.to_thread(cli, "users", "create", "ada", "--admin", "--generate")
        shown = await asyncio.to_thread(cli, "users", "show", "ADA")
        assert "ada@localhost.localdomain" in shown.stdout
        found = json.loads((await asyncio.to_thread(cli, "users", "show", "ada", "--json")).stdout)
        assert "T" in found["created_at"]
        assert datetime.fromisoformat(found.pop("created_at")).tzinfo
        assert found == {
            "id": 1,
            "username": "ada",
            "email": "ada@localhost.localdomain",
            "role": "admin",
            "is_active": True,
            "platform_admin": False,
            "must_change_password": False,
            "sso": False,
            "link_approved": False,
            "organizations": [],
        }

    def test_empty_list_says_what_to_do(self, cli: Cli) -> None:
        assert "platformctl users create" in cli("users", "list").stderr


class TestSecrets:
    def test_kept_for_its_owner_alone(self, cli: Cli, platform_home: Path) -> None:
        """The value comes from standard input, without its line end, and only its owner can read the file."""
        assert cli("secret", "set", "deploy", input="s3cret\n").exit_code == 0
        file = platform_home / "secrets" / "deploy"
        assert file.read_text() == "s3cret"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(platform_home.stat().st_mode) == 0o700

    def test_value_is_never_shown(self, cli: Cli) -> None:
        said = cli("secret", "set", "deploy", input="s3cret").output
        listed = cli("secret", "list")
        assert "s3cret" not in said + listed.output
        assert "deploy" in listed.stdout.split()
        assert "deploy" in json.loads(cli("secret", "list", "--json").stdout)

    def test_value_is_no_argument(self, cli: Cli) -> None:
        """A value on the command line, where other users could see it, is wrong usage."""
        assert cli("secret", "set", "deploy", "s3cret").exit_code == 2

    def test_empty_value_keeps_the_old_one(self, cli: Cli, platform_home: Path) -> None:
        """Nothing on standard input is an error, not an empty secret."""
        cli("secret", "set", "deploy", input="s3cret")
        assert cli("secret", "set", "deploy", input="\n").exit_code == 1
        assert (platform_home / "secrets" / "deploy").read_text() == "s3cret"

    @pytest.mark.parametrize("name", ["Deploy", "../deploy", "a b"])
    def test_bad_name_is_wrong_usage(self, cli: Cli, name: str) -> None:
        """A name that can't be a file's is refused before anything is read."""
        assert cli("secret", "set", name, input="s3cret").exit_code == 2

    def test_remove(self, cli: Cli) -> None:
        """A removed secret is gone; removing an unknown one ends with exit code 3."""
        cli("secret", "set", "deploy", input="s3cret")
        assert cli("secret", "remove", "deploy").exit_code == 0
        assert cli("secret", "remove", "deploy").exit_code == 3

    @pytest.mark.parametrize("name", ["jwt-secret", "owner-secrets", "deletion-receipts", "published-chat"])
    def test_removing_a_key_of_the_platform_is_confirmed(self, cli: Cli, name: str) -> None:
        cli("secret", "set", name, input="a value of some length\n")
        asked = cli("secret", "remove", name, input="n\n")
        assert (asked.exit_code, f"'{name}'" in asked.output) == (1, True)
        assert name in cli("secret", "list").stdout
        assert cli("secret", "remove", name, "--yes").exit_code == 0

    async def test_audited(self, cli: Cli, start_platform: Start) -> None:
        """Each change of a secret is in the audit log, by the operator and without the value."""
        for arguments in (("set", "deploy"), ("set", "deploy"), ("remove", "deploy")):
            await asyncio.to_thread(cli, "secret", *arguments, input="s3cret")
        found = [e for e in await audited((await start_platform()).platform) if e.target_type == "secret"]
        assert [(e.action, e.before_state, e.after_state) for e in found] == [
            ("secret.set", {"is_set": False}, {"is_set": True}),
            ("secret.set", {"is_set": True}, {"is_set": True}),
            ("secret.removed", {"is_set": True}, {"is_set": False}),
        ]
        assert {(e.target_id, e.actor_id, e.user_agent) for e in found} == {("deploy", None, "platformctl")}

    def test_nothing_changes_unaudited(self, cli: Cli, tmp_path: Path, platform_home: Path) -> None:
        """When the audit log can't be written, the secret stays as it was."""
        env = {"DATABASE_URL": f"sqlite:///{tmp_path}/nowhere/platform.db"}
        refused = cli("secret", "set", "deploy", input="s3cret", env=env)
        assert (refused.exit_code, (platform_home / "secrets" / "deploy").exists()) == (1, False)


class TestServiceTokens:
    async def test_token_is_accepted(self, cli: Cli, start_platform: Start) -> None:
        """The token that is printed makes its bearer a service of this name, until it expires."""
        made = await asyncio.to_thread(cli, "service-token", "create", "backup", "--days", "2")
        running = await start_platform()
        claims = running.platform.resource(TOKENS).verify(made.stdout.strip())
        assert (claims["sub"], claims["role"]) == ("service:backup", "service")
        assert claims["exp"] - claims["iat"] == 2 * 86400
        answer = await running.anonymous.get(
            "/v1/auth/capabilities", headers={"Authorization": f"Bearer {made.stdout.strip()}"}
        )
        assert answer.status == 200

    def test_json(self, cli: Cli) -> None:
        made = json.loads(cli("service-token", "create", "ci", "--json").stdout)
        assert set(made) == {"name", "token", "expires_at"}

    @pytest.mark.parametrize("arguments", [("a b",), ("ci", "--days", "0"), ("ci", "--days", "4000")])
    def test_wrong_usage(self, cli: Cli, arguments: tuple[str, ...]) -> None:
        assert cli("service-token", "create", *arguments).exit_code == 2


class TestTokens:
    async def test_token_of_an_account(self, cli: Cli, start_platform: Start) -> None:
        """The operator makes a token that works, sees it without its value, and ends it."""
        await asyncio.to_thread(cli, "users", "create", "ada", "--generate")
        made = await asyncio.to_thread(
            cli, "token", "create", "ada", "--name", "chat", "--scope", "ask", "--days", "2"
        )
        assert made.exit_code == 0, made.output
        token = made.stdout.strip()
        running = await start_platform("access_tokens", "embeddings", "rag")
        program = Actor(running, token)
        assert (await program.get("/v1/rag/knowledge-bases")).status == 200
        assert (await program.get("/v1/jobs")).status == 403
        shown = await asyncio.to_thread(cli, "token", "list", "ada", "--json")
        (listed,) = json.loads(shown.stdout)
        assert (listed["username"], listed["scopes"], listed["last_four"]) == ("ada", ["ask"], token[-4:])
        assert token not in shown.stdout
        assert "chat" in (await asyncio.to_thread(cli, "token", "list")).stdout
        assert (await asyncio.to_thread(cli, "token", "revoke", str(listed["id"]))).exit_code == 0

        async def is_refused() -> bool:
            return (await program.get("/v1/rag/knowledge-bases")).status == 401

        await eventually(is_refused, 8)
        entries = [entry for entry in await audited(running.platform) if entry.target_type == "access_token"]
        assert [(entry.action, entry.actor_id) for entry in entries] == [
            ("access_token.created", None),
            ("access_token.revoked", None),
        ]

    def test_a_token_without_days(self, cli: Cli) -> None:
        cli("users", "create", "ada", "--generate")
        cli("token", "create", "ada", "--name", "cron")
        [listed] = json.loads(cli("token", "list", "ada", "--json").stdout)
        assert (listed["scopes"], listed["expires_at"]) == (["ask", "tools", "manage"], None)

    def test_refusals(self, cli: Cli) -> None:
        """Unknown accounts, tokens and scopes, and deactivated accounts, have their exit codes."""
        assert cli("token", "create", "nobody", "--name", "x").exit_code == 3
        assert cli("token", "revoke", "7").exit_code == 3
        cli("users", "create", "ada", "--generate")
        unknown = cli("token", "create", "ada", "--name", "x", "--scope", "everything")
        assert (unknown.exit_code, "--scope" in unknown.stderr) == (2, True)
        cli("users", "create", "boss", "--admin", "--generate")
        cli("users", "deactivate", "ada")
        assert cli("token", "create", "ada", "--name", "x").exit_code == 4
